package deploy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func (r *rig) stays(what string) {
	r.t.Helper()
	if _, err := r.data("web"); err != nil {
		r.t.Errorf("%s: %v", what, err)
	}
}

// logged waits until the deployer said something.
func (r *rig) logged(run *running, part string) {
	r.t.Helper()
	r.eventually("it logs "+part, func() error {
		if !strings.Contains(run.lines(), part) {
			return errors.New("it has not")
		}
		return nil
	})
}

func TestReturningDeployerTouchesNothingThatIsAsWanted(t *testing.T) {
	r := newRig(t)
	first := r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	first.stop()
	before := &corev1.ConfigMap{}
	r.check(r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "web"}, before))
	// Even a hub that lost the status is not deployed to again.
	lost := r.get("web")
	lost.Status = fleet.BundleDeploymentStatus{}
	r.check(r.kube.Status().Update(t.Context(), lost))
	r.start()
	found := r.until("web", fleet.StateReady)
	after := &corev1.ConfigMap{}
	r.check(r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "web"}, after))
	if before.ResourceVersion != after.ResourceVersion || found.Status.Release != r.target+"/web:1" {
		t.Errorf("the ConfigMap went from version %s to %s, the release is %s", before.ResourceVersion, after.ResourceVersion, found.Status.Release)
	}
}

func TestWhatVanishedWhileTheDeployerWasAwayIsRemoved(t *testing.T) {
	r := newRig(t)
	first := r.start()
	made := r.target + "-made"
	r.place("web", fleet.BundleDeploymentOptions{DefaultNamespace: made, DeleteNamespace: true}, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	first.stop()
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.start()
	r.eventually("the ConfigMap and its namespace go", func() error {
		namespace := &corev1.Namespace{}
		err := r.kube.Get(t.Context(), client.ObjectKey{Name: made}, namespace)
		if err == nil && namespace.DeletionTimestamp == nil {
			return errors.New("the namespace stays")
		}
		if r.uid(made, "web") != "" {
			return errors.New("the ConfigMap is there")
		}
		return nil
	})
}

func TestKeptResourcesStay(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{KeepResources: true}, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.eventually("the release is forgotten", func() error {
		secrets := &corev1.SecretList{}
		r.check(r.kube.List(t.Context(), secrets, client.InNamespace(r.agent)))
		if len(secrets.Items) > 0 {
			return errors.New("its history is there")
		}
		return nil
	})
	r.stays("keepResources")
}

func TestAnotherMembershipRemovesNothing(t *testing.T) {
	r := newRig(t)
	first := r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	first.stop()
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	// The hub was made anew under the same names, or the cluster registered elsewhere: the report is another one.
	r.check(r.kube.Delete(t.Context(), r.report))
	r.report.ResourceVersion, r.report.UID = "", ""
	r.create(r.report)
	run := r.start()
	r.eventually("the deployer ends, because nothing of its member is left", func() error {
		if run.rests.Load() == 0 {
			return errors.New("it runs")
		}
		return nil
	})
	r.stays("another membership")
}

func TestMemberNamespaceThatIsDeletedTakesNothingDownstreamWithIt(t *testing.T) {
	r := newRig(t)
	run := r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	// A finalizer keeps the namespace as it is while it is being deleted, with everything but the BundleDeployment.
	r.report.Finalizers = []string{"test/hold"}
	r.check(r.kube.Update(t.Context(), r.report))
	t.Cleanup(func() {
		r.report.Finalizers = nil
		_ = r.kube.Update(t.Context(), r.report)
	})
	r.check(r.kube.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.member}}))
	r.logged(run, "stays, because the hub does not say whether its BundleDeployment was deleted")
	r.stays("the member namespace is being deleted")
}

func TestReleaseMovesToAnotherNamespace(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	other := r.namespace("other-")
	r.place("web", fleet.BundleDeploymentOptions{TargetNamespace: other}, configMap("web", "one"))
	r.eventually("the release is in the other namespace", func() error {
		found := r.get("web")
		if !strings.HasPrefix(found.Status.Release, other+"/web:") || found.Status.Display.State != string(fleet.StateReady) {
			return fmt.Errorf("it is %s, %s", found.Status.Release, found.Status.Display.State)
		}
		return nil
	})
	if _, err := r.data("web"); !apierrors.IsNotFound(err) {
		t.Errorf("it is in the first namespace too: %v", err)
	}
}
