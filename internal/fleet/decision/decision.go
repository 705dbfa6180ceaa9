// Package decision writes the decisions of users about registration requests and members, for the
// command line and the dashboard. The hub reads them from annotations.
//
// Its invariant: a decision changes only the object seen by the user. The API server checks its
// UID.
package decision

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// Decision is a user's decision, written as an annotation.
type Decision struct {
	// Name is the verb of the decision.
	Name string
	// annotation gets value; nil removes it.
	annotation string
	value      any
	// reason explains an approval, a denial or a quarantine.
	reason string
}

var (
	// Approve approves a registration request, or deliveries to a Cluster.
	Approve = Decision{Name: "approve", annotation: fleet.AnnotationApproved, value: membership.Approved}
	// Deny denies a registration request, or new deliveries to a Cluster.
	Deny = Decision{Name: "deny", annotation: fleet.AnnotationApproved, value: membership.Denied}
	// Reconsider withdraws an approval or a denial.
	Reconsider = Decision{Name: "reconsider", annotation: fleet.AnnotationApproved}
	// Revoke ends the access of a member.
	Revoke = Decision{Name: "revoke", annotation: clusterv1beta1.AnnotationRevoked, value: "true"}
	// Readmit lets a revoked member join again.
	Readmit = Decision{Name: "readmit", annotation: clusterv1beta1.AnnotationRevoked}
	// Cordon keeps new deliveries from a member.
	Cordon = Decision{Name: "cordon", annotation: fleet.AnnotationCordoned, value: "true"}
	// Drained notes on a cordoned member that its placements have moved to other members.
	Drained = Decision{Name: "drain", annotation: fleet.AnnotationDrained, value: "true"}
	// Uncordon lets a cordoned member get new deliveries again.
	Uncordon = Decision{Name: "uncordon", annotation: fleet.AnnotationCordoned}
	// Quarantine leaves a member only its heartbeat.
	Quarantine = Decision{Name: "quarantine", annotation: fleet.AnnotationQuarantined, value: "true"}
	// Unquarantine ends the quarantine of a member.
	Unquarantine = Decision{Name: "unquarantine", annotation: fleet.AnnotationQuarantined}
)

// reasonsOf holds the annotation for the reason of a decision, by the annotation of the decision.
var reasonsOf = map[string]string{
	fleet.AnnotationApproved:    fleet.AnnotationApprovalReason,
	fleet.AnnotationQuarantined: fleet.AnnotationQuarantineReason,
}

// Write writes the decision to an object. The reason of an earlier decision does not stay.
func (d Decision) Write(ctx context.Context, c client.Client, o client.Object) error {
	values := map[string]any{d.annotation: d.value}
	switch d.annotation {
	case fleet.AnnotationCordoned:
		values[fleet.AnnotationDrained] = nil // a new cordon, or none, is not drained yet
		values[fleet.AnnotationDrainProgress] = nil
	case fleet.AnnotationDrained:
		values[fleet.AnnotationDrainProgress] = nil
	}
	if annotation := reasonsOf[d.annotation]; annotation != "" {
		if values[annotation] = nil; d.reason != "" {
			values[annotation] = d.reason
		}
	}
	return kube.Annotate(ctx, c, o, values)
}

// TakesReason reports whether users can say why they decide so.
func (d Decision) TakesReason() bool { return reasonsOf[d.annotation] != "" && d.value != nil }

// Because adds a reason for users to an approval, a denial or a quarantine.
func (d Decision) Because(reason string) Decision {
	d.reason = reason
	return d
}

// Verb returns the verb needed for the decision, besides the right to patch; empty for none.
func (d Decision) Verb() string {
	switch d.annotation {
	case fleet.AnnotationApproved:
		return "approve"
	case fleet.AnnotationCordoned, fleet.AnnotationDrained:
		return "cordon"
	case fleet.AnnotationQuarantined:
		return "quarantine"
	}
	return ""
}

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
	quarantine := Quarantine
	if membership.Quarantined(member) {
		quarantine = Unquarantine
	}
	decisions = append(decisions, quarantine)
	if membership.Revoked(member) {
		return append(decisions, Readmit)
	}
	return append(decisions, Revoke)
}

// OfService returns the decisions that would change whether a member is in service.
func OfService(member client.Object) []Decision {
	switch {
	case member.GetDeletionTimestamp() != nil:
		return nil
	case !membership.Cordoned(member):
		return []Decision{Cordon, Drained}
	case !membership.Drained(member):
		return []Decision{Drained, Uncordon}
	}
	return []Decision{Uncordon}
}
