// Package decision writes the decisions of users about registration requests and members, for the
// command line and the dashboard. The hub reads them from annotations.
//
// Its invariant: a decision changes only the object that the user has seen. The API server checks
// its UID.
package decision

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// Decision is a decision that a user writes as an annotation.
type Decision struct {
	// Name is the verb of the decision.
	Name string
	// annotation gets value; nil removes it.
	annotation string
	value      any
}

var (
	// Approve approves a registration request, or deliveries to a Cluster.
	Approve = Decision{"approve", fleet.AnnotationApproved, membership.Approved}
	// Deny denies a registration request, or new deliveries to a Cluster.
	Deny = Decision{"deny", fleet.AnnotationApproved, membership.Denied}
	// Reconsider withdraws an approval or a denial.
	Reconsider = Decision{"reconsider", fleet.AnnotationApproved, nil}
	// Revoke ends the access of a member.
	Revoke = Decision{"revoke", clusterv1beta1.AnnotationRevoked, "true"}
	// Readmit lets a revoked member join again.
	Readmit = Decision{"readmit", clusterv1beta1.AnnotationRevoked, nil}
	// Cordon keeps new deliveries from a member.
	Cordon = Decision{"cordon", fleet.AnnotationCordoned, "true"}
	// Drained notes on a cordoned member that its placements have moved to other members.
	Drained = Decision{"drain", fleet.AnnotationDrained, "true"}
	// Uncordon lets a cordoned member get new deliveries again.
	Uncordon = Decision{"uncordon", fleet.AnnotationCordoned, nil}
)

// Write writes the decision to an object.
func (d Decision) Write(ctx context.Context, c client.Client, o client.Object) error {
	values := map[string]any{d.annotation: d.value}
	if d.annotation == fleet.AnnotationCordoned {
		values[fleet.AnnotationDrained] = nil // a new cordon, or none, is not drained yet
	}
	return kube.Annotate(ctx, c, o, values)
}

// NeedsApprover reports whether the decision takes the verb approve, besides the right to patch.
func (d Decision) NeedsApprover() bool { return d.annotation == fleet.AnnotationApproved }

// Decided reports whether an object has an approval or a denial.
func Decided(o client.Object) bool {
	_, decided := o.GetAnnotations()[fleet.AnnotationApproved]
	return decided
}

// OfMember returns the decisions that would change the present state of a Cluster or MemberCluster.
func OfMember(member client.Object) (decisions []Decision) {
	if member.GetDeletionTimestamp() != nil {
		return nil
	}
	if cluster, ok := member.(*fleet.Cluster); ok && kube.FindCondition(cluster.Status.Conditions, fleet.ConditionDeliveryApproved) != nil {
		if membership.AwaitsApproval(cluster) {
			decisions = append(decisions, Approve)
		}
		if member.GetAnnotations()[fleet.AnnotationApproved] != membership.Denied {
			decisions = append(decisions, Deny)
		}
	}
	if membership.Revoked(member) {
		return append(decisions, Readmit)
	}
	return append(decisions, Revoke)
}
