package cluster

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentbundle"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// coalesce is how long the hub gathers reports of BundleDeployments before it writes them to the
// Cluster.
const coalesce = time.Second

// rollUp reads the BundleDeployments in the member namespace.
func (c *Controller) rollUp(ctx context.Context, o *observed) error {
	var list fleet.BundleDeploymentList
	if err := c.Client.List(ctx, &list, client.InNamespace(o.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the BundleDeployments of %s: %w", o.Namespace, err)
	}
	o.deployments = list.Items
	for i := range list.Items {
		o.delivered = o.delivered || list.Items[i].Labels[fleet.LabelAgent] == ""
	}
	return nil
}

// sumUp counts the BundleDeployments. Reports of a departed agent do not count as ready. The own
// deployment of a new agent does not count until it has an outcome. While an agent replaces itself,
// its own deployment counts as before.
func (o *observed) sumUp(now time.Time) {
	entries := make([]rollup.Entry, 0, len(o.deployments))
	o.repositories, o.helmOps = sources{}, sources{}
	gone := o.gone()
	for i := range o.deployments {
		d := &o.deployments[i]
		entry := rollup.Entry{Name: d.Name, State: delivery.EffectiveState(d), Message: rollup.Message(d), Deployment: d}
		if since, first := o.agentSince(d, entry.State, now); !since.IsZero() {
			o.installing = since
			if first {
				continue
			}
			entry.State, entry.Message = fleet.StateReady, ""
		}
		counts, from := d.Status.ResourceCounts, d.Labels[fleet.LabelBundleNamespace]
		if from != "" && from != o.Workspace {
			entry.Name = from + "/" + d.Name
		}
		if entry.State == fleet.StateOutsideWindow {
			entry.Message = cmp.Or(membership.OutsideWindow(&o.before), entry.Message)
		}
		if gone != "" {
			entry, counts = entry.AsOf(gone, lastSeen(*o)), rollup.Unconfirmed(counts)
		}
		entries = append(entries, entry)
		o.repositories.add(from, d.Labels[fleet.LabelRepoName], entry.State)
		o.helmOps.add(from, d.Labels[fleet.LabelHelmOpName], entry.State)
		rollup.AddCounts(&o.resources, counts)
	}
	o.bundles = rollup.Summarize(entries)
}

// agentSince returns the begin of a change to the agent's own BundleDeployment while it is on its
// way, for half a minute at most. This is the first one of a new agent, or a new version for an
// agent that was ready. The condition AgentUpToDate shows both.
func (o *observed) agentSince(d *fleet.BundleDeployment, state fleet.BundleState, now time.Time) (since time.Time, first bool) {
	if d.Labels[fleet.LabelAgent] == "" {
		return time.Time{}, false
	}
	switch state {
	case fleet.StateWaitApplied, fleet.StateOutOfSync, fleet.StatePending, fleet.StateNotReady, fleet.StateWaitingForDependency:
	case fleet.StateReady, fleet.StateModified, fleet.StateErrApplied, fleet.StateOutsideWindow, fleet.StatePaused: // no change soon
		return time.Time{}, false
	}
	switch upToDate := kube.FindCondition(o.before.Conditions, fleet.ConditionAgentUpToDate); {
	case upToDate == nil:
		since, first = d.CreationTimestamp.Time, true
	case upToDate.Reason == string(agentbundle.Updating) && o.before.Summary.Ready == o.before.Summary.DesiredReady:
		since, _ = time.Parse(time.RFC3339, upToDate.LastUpdateTime) // zero for another text
	}
	if age := now.Sub(since); age < 0 || age >= controller.Adoption {
		return time.Time{}, false
	}
	return since, first
}

// gone returns the reason why the agent sends no further reports, or "".
func (o observed) gone() string {
	switch {
	case o.Foreign || !o.Seen():
		return ""
	case o.agent == "":
		return membership.AgentRevoked.Gone()
	case o.left() != "":
		return membership.AgentLeft.Gone()
	case o.Lost():
		return membership.AgentLost.Gone()
	}
	return ""
}

// sources maps the GitRepos or HelmOps behind Bundles to whether all their Bundles are ready.
type sources map[types.NamespacedName]bool

// add counts a Bundle of a source; of none if name is empty.
func (s sources) add(namespace, name string, state fleet.BundleState) {
	if name == "" {
		return
	}
	source := types.NamespacedName{Namespace: namespace, Name: name}
	others, known := s[source]
	s[source] = state == fleet.StateReady && (others || !known)
}

// ready counts the sources with only ready Bundles.
func (s sources) ready() (count int) {
	for _, ready := range s {
		if ready {
			count++
		}
	}
	return count
}

// describeSources counts the GitRepos and HelmOps behind the Bundles of a Cluster.
func describeSources(after *fleet.ClusterStatus, o observed) {
	after.ReadyGitRepos, after.DesiredReadyGitRepos = o.repositories.ready(), len(o.repositories)
	after.ReadyHelmOps, after.DesiredReadyHelmOps = o.helmOps.ready(), len(o.helmOps)
}

// onDeployment enqueues the Cluster of a BundleDeployment after a short delay, once for all reports
// in this time.
func (c *Controller) onDeployment() handler.EventHandler {
	return controller.On(func(ctx context.Context, before, after *fleet.BundleDeployment, q controller.Queue) {
		if before != nil && after != nil && rollup.OnlyShown(before, after) {
			return
		}
		for _, request := range membernamespace.ClusterOfNamespace(ctx, c.Client, cmp.Or(after, before).Namespace) {
			q.AddAfter(request, coalesce)
		}
	})
}
