package bundle

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// withheld reports whether a Cluster gets nothing of a Bundle. It removes from the map the
// deployments not deleted one by one:
//
//   - The leave policy of a Cluster decides whether its deployments stay installed.
//   - The deployments of a now or formerly revoked Cluster are deleted with the namespace, and stay
//     installed.
//   - A Cluster without approval keeps its deployments.
//   - A quarantined Cluster keeps them as they are, including its agent's.
func withheld(bundle *fleet.Bundle, cluster *fleet.Cluster, deployments map[string]*fleet.BundleDeployment) bool {
	for _, former := range membernamespace.Disused(cluster) {
		delete(deployments, former.Namespace)
	}
	if deliverable(cluster) && !membership.Quarantined(cluster) &&
		(bundle.Labels[fleet.LabelAgent] != "" || !membership.AwaitsApproval(cluster)) {
		return false
	}
	delete(deployments, membernamespace.OfCluster(cluster).Namespace)
	return true
}

// deliverable reports whether a Cluster has a member namespace, is neither leaving nor revoked,
// and is managed by this hub.
func deliverable(cluster *fleet.Cluster) bool {
	return cluster.Status.Namespace != "" && cluster.DeletionTimestamp == nil && !membership.Revoked(cluster) &&
		cluster.Labels[fleet.LabelClusterManagement] == ""
}

// clusterOf returns the Cluster of a member namespace, from the cache; nil if there is none.
func (c *Controller) clusterOf(ctx context.Context, memberNamespace string) (*fleet.Cluster, error) {
	namespace := kube.CoreMetadata("Namespace")
	if err := c.Client.Get(ctx, types.NamespacedName{Name: memberNamespace}, namespace); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	key, is := membership.RecordOf(namespace)
	if !is || namespace.DeletionTimestamp != nil {
		return nil, nil
	}
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, key, &cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &cluster, nil
}

// confined divides deployments into removable ones, and quarantined Clusters with the others. The
// end of a quarantine enqueues their Bundles.
func (c *Controller) confined(ctx context.Context, deployments []*fleet.BundleDeployment) (removable []*fleet.BundleDeployment,
	quarantined []*fleet.Cluster, err error) {
	for _, d := range deployments {
		cluster, err := c.clusterOf(ctx, d.Namespace)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("reading the Cluster of %s: %w", d.Namespace, err)
		case cluster != nil && cluster.DeletionTimestamp == nil && membership.Quarantined(cluster):
			quarantined = append(quarantined, cluster)
		default:
			removable = append(removable, d)
		}
	}
	return removable, quarantined, nil
}

// onQuarantine enqueues the Bundles of all deployments on a Cluster. Some of them may no longer
// target the Cluster, or may be deleted.
func (c *Controller) onQuarantine(ctx context.Context, before, after *fleet.Cluster, q controller.Queue) {
	if membership.Quarantined(before) == membership.Quarantined(after) {
		return
	}
	var on fleet.BundleDeploymentList
	c.list(ctx, &on, client.InNamespace(membernamespace.OfCluster(after).Namespace))
	for i := range on.Items {
		enqueueBundleOf(q, &on.Items[i])
	}
}
