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

// coalesce is how long reports of BundleDeployments are gathered before the Cluster shows them.
const coalesce = time.Second

// rollUp counts the BundleDeployments in the member namespace.
func (c *Controller) rollUp(ctx context.Context, o *observed) error {
	var list fleet.BundleDeploymentList
	if err := c.Client.List(ctx, &list, client.InNamespace(o.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the BundleDeployments of %s: %w", o.Namespace, err)
	}
	entries, ready := make([]rollup.Entry, 0, len(list.Items)), map[types.NamespacedName]bool{}
	for i := range list.Items {
		d := &list.Items[i]
		o.delivered = o.delivered || d.Labels[fleet.LabelAgent] == ""
		entry := rollup.Entry{Name: d.Name, State: rollup.StateOf(d), Message: rollup.Message(d), Deployment: d}
		from := d.Labels[fleet.LabelBundleNamespace]
		if from != "" && from != o.Workspace {
			entry.Name = from + "/" + d.Name
		}
		entries = append(entries, entry)
		if name := d.Labels[fleet.LabelRepoName]; name != "" {
			repository := types.NamespacedName{Namespace: from, Name: name}
			others, known := ready[repository]
			ready[repository] = entry.State == fleet.StateReady && (others || !known)
		}
		rollup.AddCounts(&o.resources, d.Status.ResourceCounts)
	}
	o.bundles, o.repositories = rollup.Summarize(entries), ready
	return nil
}

// repositoriesReady counts the GitRepos all of whose Bundles are ready.
func (o observed) repositoriesReady() (count int) {
	for _, ready := range o.repositories {
		if ready {
			count++
		}
	}
	return count
}

// onDeployment reconciles the Cluster of a BundleDeployment in a moment, once for all reports of that time.
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
