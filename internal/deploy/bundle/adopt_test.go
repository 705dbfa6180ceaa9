package bundle

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
	contents "github.com/muster-fleet/muster/internal/delivery"
)

func (r *rig) stays(what string) {
	r.t.Helper()
	if _, err := r.data("web"); err != nil {
		r.t.Errorf("%s: %v", what, err)
	}
}

func TestReturningDeployerTouchesNothingThatIsAsWanted(t *testing.T) {
	r := newRig(t)
	first := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	first.stop()
	before := r.delivered("web")
	// Even a hub that lost the status is not deployed to again.
	lost := r.get("web")
	lost.Status = fleet.BundleDeploymentStatus{}
	r.check(r.kube.Status().Update(t.Context(), lost))
	r.start()
	found := r.until("web", fleet.StateReady)
	if after := r.delivered("web"); before.ResourceVersion != after.ResourceVersion || found.Status.Release != r.target+"/web:1" {
		t.Errorf("the ConfigMap went from version %s to %s, the release is %s",
			before.ResourceVersion, after.ResourceVersion, found.Status.Release)
	}
}

func TestWhatVanishedWhileTheDeployerWasAwayIsRemoved(t *testing.T) {
	r := newRig(t)
	first := r.start()
	made := r.target + "-made"
	r.deploy("web", fleet.BundleDeploymentOptions{DefaultNamespace: made, DeleteNamespace: true}, configMap("web", "one"))
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
	r.deploy("web", fleet.BundleDeploymentOptions{KeepResources: true}, configMap("web", "one"))
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.eventually("the release is forgotten", func() error {
		secrets := &corev1.SecretList{}
		if err := r.kube.List(t.Context(), secrets, client.InNamespace(r.target)); err != nil {
			return err
		}
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
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	first.stop()
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	// The hub was made anew under the same names, or the cluster registered elsewhere: the
	// report is another one.
	r.renewReport()
	run := r.start()
	r.nothingLeftToDo(run, 0)
	r.stays("another membership")
}

func TestMemberNamespaceThatIsDeletedTakesNothingDownstreamWithIt(t *testing.T) {
	r := newRig(t)
	run := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	// A finalizer keeps the namespace as it is while it is being deleted, with everything but
	// the BundleDeployment.
	r.change(r.report, func() { r.report.Finalizers = []string{"test/hold"} })
	t.Cleanup(func() {
		r.report.Finalizers = nil
		_ = r.kube.Update(t.Context(), r.report)
	})
	r.check(r.kube.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.member}}))
	r.says(run, "stays, because the hub does not report whether its BundleDeployment was deleted")
	r.stays("the member namespace is being deleted")
}

func TestReleaseMovesToAnotherNamespace(t *testing.T) {
	r := newRig(t)
	r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	other := r.namespace("other-")
	r.place("web", fleet.BundleDeploymentOptions{TargetNamespace: other}, configMap("web", "one"))
	r.eventually("the release is in the other namespace", func() error {
		found := r.get("web")
		if !strings.HasPrefix(found.Status.Release, other+"/web:") || contents.StateOf(found) != fleet.StateReady {
			return fmt.Errorf("it is %s, %s", found.Status.Release, contents.StateOf(found))
		}
		return nil
	})
	if _, err := r.data("web"); !apierrors.IsNotFound(err) {
		t.Errorf("it is in the first namespace too: %v", err)
	}
}
