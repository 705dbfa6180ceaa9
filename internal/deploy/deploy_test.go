package deploy

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestPlainYAMLIsDeployedReportedUpgradedAndRemoved(t *testing.T) {
	r := newRig(t)
	run := r.start()
	begun := time.Now()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	found := r.until("web", fleet.StateReady)
	t.Logf("ready after %s\n%s", time.Since(begun), run.lines())
	if want := r.target + "/web:1"; found.Status.Release != want {
		t.Errorf("release %q, want %q", found.Status.Release, want)
	}
	if !found.Status.Ready || !found.Status.NonModified || found.Status.ResourceCounts.Ready != 1 || len(found.Status.Resources) != 1 {
		t.Errorf("status %+v", found.Status)
	}
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", `"{{ two }}"`))
	r.until("web", fleet.StateReady)
	if got, err := r.data("web"); got != "{{ two }}" && err == nil {
		t.Errorf("the data is %q", got)
	}
	before := run.rests.Load()
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.eventually("the ConfigMap is gone", func() error {
		if _, err := r.data("web"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	r.eventually("the deployer ends when nothing is left", func() error {
		if run.rests.Load() == before {
			return errors.New("it runs")
		}
		return nil
	})
}

func TestChangeByHandIsShownAndCorrectedOnlyIfAsked(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.until("web", fleet.StateReady)
	edit := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: r.target}}
	r.check(r.kube.Patch(t.Context(), edit, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"key":"by hand"}}`))))
	found := r.until("web", fleet.StateModified, "ConfigMap "+r.target+"/web was changed downstream", `{"data":{"key":"one"}}`)
	if found.Status.NonModified || len(found.Status.ModifiedStatus) != 1 {
		t.Errorf("status %+v", found.Status)
	}
	r.check(r.kube.Delete(t.Context(), edit))
	r.until("web", fleet.StateModified, "was deleted downstream")
	made := r.get("web")
	made.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true}
	r.check(r.kube.Update(t.Context(), made))
	r.until("web", fleet.StateReady)
	if got, err := r.data("web"); err != nil || got != "one" {
		t.Errorf("the data is %q, %v", got, err)
	}
}
