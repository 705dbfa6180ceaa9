package bundle

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestPlainYAMLIsDeployedReportedUpgradedAndRemoved(t *testing.T) {
	r := newRig(t)
	run := r.start()
	begun := time.Now()
	found := r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	t.Logf("ready after %s\n%s", time.Since(begun), run.lines())
	if want := r.target + "/web:1"; found.Status.Release != want {
		t.Errorf("release %q, want %q", found.Status.Release, want)
	}
	if !found.Status.Ready || !found.Status.NonModified || found.Status.ResourceCounts.Ready != 1 || len(found.Status.Resources) != 1 {
		t.Errorf("status %+v", found.Status)
	}
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", `"{{ two }}"`))
	if got, err := r.data("web"); got != "{{ two }}" || err != nil {
		t.Errorf("the data is %q, %v", got, err)
	}
	before := run.ends.Load()
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilGone(r.configMap("web"))
	r.nothingLeftToDo(run, before)
}

func TestChangeByHandIsShownAndCorrectedOnlyIfAsked(t *testing.T) {
	r := newRig(t)
	r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	edit := r.configMap("web")
	r.check(r.kube.Patch(t.Context(), edit, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"key":"by hand"}}`))))
	found := r.until("web", fleet.StateModified, "configmap.v1 "+r.target+"/web modified", `{"data":{"key":"one"}}`)
	if found.Status.NonModified || len(found.Status.ModifiedStatus) != 1 {
		t.Errorf("status %+v", found.Status)
	}
	r.check(r.kube.Delete(t.Context(), edit))
	r.until("web", fleet.StateModified, "/web missing")
	made := r.get("web")
	r.change(made, func() { made.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true} })
	r.until("web", fleet.StateReady)
	if got, err := r.data("web"); err != nil || got != "one" {
		t.Errorf("the data is %q, %v", got, err)
	}
}
