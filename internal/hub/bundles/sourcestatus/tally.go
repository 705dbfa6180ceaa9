package sourcestatus

import (
	"slices"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/kube"
)

// tally gathers the reports from the BundleDeployments of a source.
type tally struct {
	counts fleet.ResourceCounts
	// clusters holds the deployed resources on each Cluster, by namespace/name.
	clusters map[string]*onCluster
	// groups are the deployments with one list of resources, all in one state.
	groups map[groupKey]*group
	// exceptions are the resources in another state than their deployment, by Cluster.
	exceptions map[resourceKey]map[string]state
}

type onCluster struct {
	counts  fleet.ResourceCounts
	unready bool
}

// groupKey is a list, by its first resource and its length, with a state.
type groupKey struct {
	first  *fleet.DeployedResource
	length int
	state  state
}

// state is the state of a resource on a Cluster.
type state struct {
	name, message string
	// fails: the resource does not become ready by itself; moves: it is about to become ready.
	fails, moves bool
}

type group struct {
	resources []fleet.DeployedResource
	clusters  []string
	partial   bool
}

type resourceKey struct{ apiVersion, kind, namespace, name string }

// The states of resources, the worst first. Rancher Fleet uses the same names.
const (
	missing  = "Missing"
	orphaned = "Orphaned"
	unknown  = "Unknown"
)

var severity = []string{
	string(fleet.StateErrApplied), missing, orphaned, string(fleet.StateModified), string(fleet.StateNotReady),
	string(fleet.StateWaitApplied), unknown, string(fleet.StatePending), string(fleet.StateReady),
}

// maxMessage limits the message of a resource.
const maxMessage = 300

func newTally() *tally {
	return &tally{clusters: map[string]*onCluster{}, groups: map[groupKey]*group{}, exceptions: map[resourceKey]map[string]state{}}
}

// add counts a BundleDeployment.
func (t *tally) add(d *fleet.BundleDeployment) {
	name := d.Labels[fleet.LabelClusterNamespace] + "/" + d.Labels[fleet.LabelCluster]
	on := t.clusters[name]
	if on == nil {
		on = &onCluster{}
		t.clusters[name] = on
	}
	whole, counts := wholeState(d), d.Status.ResourceCounts
	if whole.name == unknown {
		counts = rollup.Unconfirmed(counts)
	}
	rollup.AddCounts(&t.counts, counts)
	rollup.AddCounts(&on.counts, counts)
	others := exceptions(d)
	on.unready = on.unready || whole.name != string(fleet.StateReady) || len(others) > 0 || d.Status.Display.State != string(fleet.StateReady)
	if whole.name != unknown {
		for key, other := range others {
			if t.exceptions[key] == nil {
				t.exceptions[key] = map[string]state{}
			}
			t.exceptions[key][name] = other
		}
	}
	list := d.Status.Resources
	if len(list) == 0 {
		return
	}
	key := groupKey{&list[0], len(list), whole}
	g := t.groups[key]
	if g == nil {
		g = &group{resources: list}
		t.groups[key] = g
	}
	g.clusters = append(g.clusters, name)
	g.partial = g.partial || d.Status.IncompleteState || d.Status.ResourceCounts.DesiredReady > len(list)
}

// wholeState is the state of the resources of a deployment without one of their own. The hub shows
// another state than Ready for a ready deployment if the agent is gone.
func wholeState(d *fleet.BundleDeployment) state {
	reported := delivery.Wire(delivery.EffectiveState(d))
	if shown := d.Status.Display.State; reported == fleet.StateReady && shown != "" && shown != string(reported) {
		return state{name: unknown, message: "the agent has not confirmed it lately"}
	}
	switch reported {
	case fleet.StateReady, fleet.StateModified, fleet.StateNotReady:
		return state{name: string(fleet.StateReady)}
	case fleet.StateErrApplied:
		return state{name: string(reported), message: kube.Clip(rollup.Message(d), maxMessage), fails: true}
	case fleet.StateWaitApplied, fleet.StateOutOfSync:
		return state{name: string(fleet.StateWaitApplied), message: kube.Clip(rollup.Message(d), maxMessage), moves: true}
	case fleet.StatePending, fleet.StateWaitingForDependency, fleet.StatePaused, fleet.StateOutsideWindow:
	}
	return state{name: string(fleet.StatePending), message: kube.Clip(rollup.Message(d), maxMessage)}
}

// exceptions returns the changed and unready resources in a report.
func exceptions(d *fleet.BundleDeployment) map[resourceKey]state {
	found := map[resourceKey]state{}
	for _, r := range d.Status.NonReadyStatus {
		found[resourceKey{r.APIVersion, r.Kind, r.Namespace, r.Name}] = state{name: string(fleet.StateNotReady), fails: r.Summary.Error,
			moves: r.Summary.Transitioning, message: kube.Clip(strings.Join(r.Summary.Message, "; "), maxMessage)}
	}
	for _, r := range d.Status.ModifiedStatus {
		is := state{name: string(fleet.StateModified)}
		switch {
		case r.Create:
			is.name = missing
		case r.Delete:
			is.name = orphaned
		}
		found[resourceKey{r.APIVersion, r.Kind, r.Namespace, r.Name}] = is
	}
	return found
}

func rank(name string) int { return slices.Index(severity, name) }
