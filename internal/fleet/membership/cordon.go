package membership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Cordoned reports whether a Cluster or MemberCluster gets no new deliveries. Present ones stay and
// are updated.
func Cordoned(member metav1.Object) bool {
	return member.GetAnnotations()[fleet.AnnotationCordoned] == "true"
}

// Drained reports whether muster drain has moved the placements of a cordoned member.
func Drained(member metav1.Object) bool {
	return Cordoned(member) && member.GetAnnotations()[fleet.AnnotationDrained] == "true"
}

// HeldByCordon returns the reason why a cordoned Cluster does not get a Bundle, "" if it does: the
// Bundle is there already, or is the agent's.
func HeldByCordon(cluster *fleet.Cluster, bundle *fleet.Bundle, delivered bool) string {
	if !Cordoned(cluster) || delivered || bundle.Labels[fleet.LabelAgent] != "" {
		return ""
	}
	return "the Cluster is cordoned and gets no new deliveries: muster cordon " + cluster.Namespace + "/" + cluster.Name + " --undo"
}
