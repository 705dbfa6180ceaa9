package bundle

import (
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

// withheld reports whether a Cluster gets nothing of a Bundle. It removes from the map the
// deployments that are not deleted one by one:
//
//   - How a Cluster leaves decides whether its deployments stay installed.
//   - The deployments of a Cluster that is or was revoked go with the namespace and stay
//     installed.
//   - A Cluster without approval keeps its deployments.
func withheld(bundle *fleet.Bundle, cluster *fleet.Cluster, deployments map[string]*fleet.BundleDeployment) bool {
	for _, former := range membernamespace.Disused(cluster) {
		delete(deployments, former.Namespace)
	}
	if deliverable(cluster) && (bundle.Labels[fleet.LabelAgent] != "" || !membership.AwaitsApproval(cluster)) {
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
