package bundle

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// restoreElsewhere plays muster restore on another cluster: the report is another one, and of the
// BundleDeployments none is there yet.
func (r *rig) restoreElsewhere(names ...string) {
	r.t.Helper()
	r.lost = append(r.lost, string(r.report.UID))
	for _, name := range names {
		r.check(r.kube.Delete(r.t.Context(), r.get(name)))
	}
	r.renewReport()
}

// uninstall deletes the history and the ConfigMap of a release, as helm uninstall does.
func (r *rig) uninstall(name string) {
	r.t.Helper()
	r.check(r.kube.DeleteAllOf(r.t.Context(), &corev1.Secret{}, client.InNamespace(r.target),
		client.MatchingLabels{"owner": "helm", "name": name}))
	r.check(r.kube.Delete(r.t.Context(), r.configMap(name)))
}

func TestReleasesOfALostHubAreReportedUntilTheirBundlesAreThereAgain(t *testing.T) {
	r := newRig(t)
	names := []string{"backed-up", "later", "unwanted"}
	run := r.start()
	for _, name := range names {
		r.deploy(name, fleet.BundleDeploymentOptions{}, configMap(name, "one"))
	}
	run.stop()
	before := r.uids(names...)
	r.restoreElsewhere(names...)

	// At a hub that was not restored, they are of another membership, and none of its business.
	lost := r.lost
	r.lost = nil
	r.place("backed-up", fleet.BundleDeploymentOptions{}, configMap("backed-up", "one"))
	run = r.start()
	r.until("backed-up", fleet.StateReady)
	r.blocked(run, "")
	if text := run.lines(); strings.Contains(text, "Kept") {
		t.Errorf("it keeps releases of another membership:\n%s", text)
	}
	run.stop()

	r.lost = lost
	run = r.start()
	r.blocked(run, reasons.HubRestored, "release "+r.target+"/later of Bundle clusters/later", "release "+r.target+"/unwanted of Bundle",
		"create its Bundle, placement or object on the hub again", "helm uninstall RELEASE -n NAMESPACE")
	run.mu.Lock()
	if strings.Contains(run.said.Message, "backed-up") {
		t.Errorf("it names a release with a Bundle: %s", run.said.Message)
	}
	run.mu.Unlock()
	r.uninstall("unwanted")
	r.eventually("the uninstalled release is not named any more", func() error {
		run.mu.Lock()
		defer run.mu.Unlock()
		if strings.Contains(run.said.Message, "unwanted") || !strings.Contains(run.said.Message, "later") {
			return fmt.Errorf("it says %+v", run.said)
		}
		return nil
	})
	found := r.deploy("later", fleet.BundleDeploymentOptions{}, configMap("later", "one"))
	r.blocked(run, "")
	if after := r.uids("backed-up", "later"); fmt.Sprint(after) != fmt.Sprint(before[:2]) || found.Status.Release != r.target+"/later:1" {
		t.Errorf("the objects are %v of release %s, and were %v", after, found.Status.Release, before)
	}
	run.stop()
	run = r.start()
	r.removeAsHubsDo(r.get("later"), true)
	r.untilGone(r.configMap("later"))
	r.blocked(run, "")
}

func TestOnlyReleasesOfTheLostHubCountAsItsOwn(t *testing.T) {
	d := &Deployer{Member: "now", Lost: []string{"before"}, Cluster: &release.Cluster{AgentNamespace: "agents"}}
	for name, row := range map[string]struct {
		bundle  string
		release release.Summary
		want    bool
	}{
		"of the lost hub":             {"web", release.Summary{Member: "before"}, true},
		"of this report":              {"web", release.Summary{Member: "now"}, false},
		"of another hub":              {"web", release.Summary{Member: "other"}, false},
		"of no hub":                   {"web", release.Summary{}, false},
		"the agent's own":             {"web", release.Summary{Member: "before", Agent: true}, false},
		"of upstream's agent":         {"fleet-agent-x", release.Summary{Member: "before", Namespace: "agents"}, false},
		"of that name, and elsewhere": {"fleet-agent-x", release.Summary{Member: "before", Namespace: "shop"}, true},
	} {
		if got := d.isFromLost(row.bundle, newDelivery(row.release)); got != row.want {
			t.Errorf("%s: it is from the lost hub: %t", name, got)
		}
	}
	if d.isFromLost("web", newDelivery()) {
		t.Error("no release is from the lost hub")
	}
}
