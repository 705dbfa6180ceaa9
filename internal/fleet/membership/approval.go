package membership

import (
	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// ReasonApprovalRequired is why nothing is delivered to a Cluster that nobody has approved.
const ReasonApprovalRequired = "ApprovalRequired"

// AwaitsApproval returns whether nothing but its own agent may be delivered to a Cluster, because nobody has approved it. The controller of Clusters
// decides that, and shows it not later than the namespace without which nothing is delivered.
func AwaitsApproval(cluster *fleet.Cluster) bool {
	approved := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionDeliveryApproved)
	return approved != nil && approved.Status == corev1.ConditionFalse
}
