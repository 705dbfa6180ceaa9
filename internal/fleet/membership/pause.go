package membership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Paused reports whether nothing may change on a Cluster or MemberCluster, or by a placement.
func Paused(o metav1.Object) bool {
	cluster, isCluster := o.(*fleet.Cluster)
	return o.GetAnnotations()[fleet.AnnotationPaused] == "true" || isCluster && cluster.Spec.Paused
}

// Unpause returns the command to end the pause of a member or a placement. The name may begin with
// a kind.
func Unpause(name string) string { return "muster pause " + name + " --undo" }
