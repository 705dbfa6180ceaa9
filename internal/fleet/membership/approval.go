package membership

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// The values of annotation fleet.AnnotationApproved, on a registration request or a Cluster.
const (
	Approved = "true"
	Denied   = "false"
)

// AwaitsApproval reports whether a Cluster waits for approval. The hub then delivers nothing but
// its own agent. The controller of Clusters decides about it. It shows the decision no later than
// the namespace, and without a namespace there are no deliveries.
func AwaitsApproval(cluster *fleet.Cluster) bool {
	approved := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionDeliveryApproved)
	return approved != nil && approved.Status == corev1.ConditionFalse
}

// DecidedBecause returns the reason of an approval or a denial, as " (unknown key)"; empty without
// one.
func DecidedBecause(o metav1.Object) string { return because(o, fleet.AnnotationApprovalReason) }

// maxReason is the maximum length of a reason. The chart's admission policies refuse longer ones.
const maxReason = 512

// because returns the reason in an annotation of an object, on one line and in brackets.
func because(o metav1.Object, annotation string) string {
	if reason := strings.Join(strings.Fields(o.GetAnnotations()[annotation]), " "); reason != "" {
		return " (" + kube.Clip(reason, maxReason) + ")"
	}
	return ""
}
