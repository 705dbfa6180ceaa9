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
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// coalesce is the time over which the hub gathers reports of BundleDeployments before it writes
// them to the Cluster.
const coalesce = time.Second

// rollUp counts the BundleDeployments in the member namespace.
func (c *Controller) rollUp(ctx context.Context, o *observed) error {
	var list fleet.BundleDeploymentList
	if err := c.Client.List(ctx, &list, client.InNamespace(o.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the BundleDeployments of %s: %w", o.Namespace, err)
	}
	entries := make([]rollup.Entry, 0, len(list.Items))
	o.repositories, o.helmOps = sources{}, sources{}
	for i := range list.Items {
		d := &list.Items[i]
		o.delivered = o.delivered || d.Labels[fleet.LabelAgent] == ""
		entry := rollup.Entry{Name: d.Name, State: rollup.StateOf(d), Message: rollup.Message(d), Deployment: d}
		from := d.Labels[fleet.LabelBundleNamespace]
		if from != "" && from != o.Workspace {
			entry.Name = from + "/" + d.Name
		}
		entries = append(entries, entry)
		o.repositories.add(from, d.Labels[fleet.LabelRepoName], entry.State)
		o.helmOps.add(from, d.Labels[fleet.LabelHelmOpName], entry.State)
		rollup.AddCounts(&o.resources, d.Status.ResourceCounts)
	}
	o.bundles = rollup.Summarize(entries)
	return nil
}

// sources are the GitRepos or HelmOps that Bundles come from, and whether all their Bundles are
// ready.
type sources map[types.NamespacedName]bool

// add counts a Bundle that comes from a source; from none if name is empty.
func (s sources) add(namespace, name string, state fleet.BundleState) {
	if name == "" {
		return
	}
	source := types.NamespacedName{Namespace: namespace, Name: name}
	others, known := s[source]
	s[source] = state == fleet.StateReady && (others || !known)
}

// ready counts the sources all of whose Bundles are ready.
func (s sources) ready() (count int) {
	for _, ready := range s {
		if ready {
			count++
		}
	}
	return count
}

// describeSources counts the GitRepos and HelmOps that the Bundles of a Cluster come from.
func describeSources(after *fleet.ClusterStatus, o observed) {
	after.ReadyGitRepos, after.DesiredReadyGitRepos = o.repositories.ready(), len(o.repositories)
	after.ReadyHelmOps, after.DesiredReadyHelmOps = o.helmOps.ready(), len(o.helmOps)
}

// onDeployment reconciles the Cluster of a BundleDeployment in a moment, once for all
// reports of that time.
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
