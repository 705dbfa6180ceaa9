package membership

import (
	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// The values of annotation fleet.AnnotationApproved, on a registration request or a Cluster.
const (
	Approved = "true"
	Denied   = "false"
)

// AwaitsApproval reports whether a Cluster waits for approval, so that the hub delivers nothing but
// its own agent. The controller of Clusters decides that. It shows the decision no later than the
// namespace, and without a namespace there are no deliveries.
func AwaitsApproval(cluster *fleet.Cluster) bool {
	approved := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionDeliveryApproved)
	return approved != nil && approved.Status == corev1.ConditionFalse
}
