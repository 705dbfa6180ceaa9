package membercluster

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/credentials/renewal"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/naming"
)

// observed holds the inputs for the status and the next step of a MemberCluster.
type observed struct {
	lifecycle.Observed
	identity rbacv1.Subject
	// identityBy is the author of the identity, if an annotation names one.
	identityBy string
	// systemNamespace is the hub's own namespace.
	systemNamespace string
	// leftovers names the finalizers of KubeFleet's hub on the MemberCluster, "" if there are none.
	leftovers string
	// accountMissing: the identity is a missing ServiceAccount. identityUID is the UID of the
	// identity's account; empty for a User, and during the deletion of the MemberCluster.
	accountMissing bool
	identityUID    types.UID
	// identityHolder is another member with the same identity, "" if there is none.
	identityHolder string
	// account is the account created by the hub for the agent; it has no UID if there is none.
	account *metav1.PartialObjectMetadata
	// reconnect is the account for rejoining by the agent's key, in the same form.
	reconnect *metav1.PartialObjectMetadata
	// keyPinned: the MemberCluster pins a key for credentials, or declines the exchange.
	keyPinned bool
	// credential holds the inputs for decisions about the agent's credential, exchanged for the
	// identity's token.
	credential renewal.State
	before     clusterv1beta1.MemberClusterStatus
	// health is the health of a member with KubeFleet's agent, if the hub counts its results. It is
	// nil if each result counts, or if the agent counts them.
	health *membership.Streak
	// rightsLag is the time until the next check of rights missing in the cache.
	rightsLag time.Duration
	// accountLag is the time until the next check of a created account missing in the cache.
	accountLag time.Duration
	// works lists the Works to remove before the request to leave. worksDefinition is the name of
	// their definition if it is gone; the Works are then unknown.
	works           []*placement.Work
	worksDefinition string
	// validation is the check of exported services before a deleted member leaves.
	validation exportCheck
	// generation of the MemberCluster.
	generation int64
}

// result is the content of one condition.
type result struct {
	status          metav1.ConditionStatus
	reason, message string
}

// leftovers names the finalizers of KubeFleet's hub on a MemberCluster with the command to remove
// them, or returns "".
func leftovers(mc *clusterv1beta1.MemberCluster) string {
	left := membernamespace.KubeFleetFinalizers(mc)
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("finalizer %s belongs to KubeFleet's hub, and blocks the deletion of the MemberCluster: if that hub is gone for "+
		"good, kubectl "+
		"delete clusterprofile %s -n %s --ignore-not-found; %s",
		strings.Join(left, ", "), mc.Name, naming.MemberSystemNamespace, membernamespace.TakeOffFinalizers("membercluster", mc))
}

// readyToJoinCondition is True if the hub has everything ready for an agent.
func readyToJoinCondition(o observed) result {
	not := func(reason, message string) result { return result{metav1.ConditionFalse, reason, message} }
	reason, message := o.NamespaceProblem()
	account, _ := accountOf(o.identity)
	switch problem := identityProblem(o.identity, o.systemNamespace); {
	case o.Revoked:
		return o.revoked()
	case reason != "":
		return not(reason, message)
	case problem != "":
		return not(reasons.IdentityInvalid, problem)
	case o.identityHolder != "":
		return not(reasons.IdentityInUse, fmt.Sprintf("%s %s is already the identity of %s: create a ServiceAccount for this cluster, and name "+
			"it in spec.identity", o.identity.Kind, o.identity.Name, o.identityHolder))
	case o.accountMissing:
		return not(reasons.IdentityMissing,
			fmt.Sprintf("ServiceAccount %s does not exist: kubectl create serviceaccount %s -n %s", account, account.Name, account.Namespace))
	}
	return result{metav1.ConditionTrue, reasons.MemberClusterReadyToJoin, "Member cluster is ready to join the fleet"}
}

// joinedCondition shows whether the agent has joined, or the progress of a leaving member.
func joinedCondition(o observed, departure lifecycle.Departure) result {
	joined := membership.AgentCondition(o.Report, clusterv1beta1.ConditionJoined)
	switch {
	case !o.Deleted.IsZero():
		shown := cmp.Or(meta.FindStatusCondition(o.before.Conditions, clusterv1beta1.ConditionJoined), &metav1.Condition{})
		return result{metav1.ConditionTrue, reasons.Leaving, departure.MessageAfter(shown.Message)}
	case o.Revoked:
		return o.revoked()
	case joined == nil || joined.Status == metav1.ConditionUnknown:
		message := fmt.Sprintf("waiting for the member agent: install the chart member-agent on the cluster with config.memberClusterName=%s",
			o.Name)
		if o.Epoch > 0 {
			message += fmt.Sprintf(" and config.memberNamespace=%s, because the member was revoked before", o.Namespace)
		}
		if o.returns() {
			message = fmt.Sprintf("waiting for the agent with key %s, which comes by itself with a token of the standby: a credential for it is "+
				"published; else give it config.hubURL and config.hubCA of this hub, and a token of %s",
				o.credential.Key[:renewal.KeyShown], describedShort(o.identity))
		}
		if joined != nil && joined.Message != "" {
			message = joined.Message
		}
		return result{metav1.ConditionUnknown, reasons.MemberClusterJoinStateUnknown, message}
	case joined.Status == metav1.ConditionTrue:
		return result{metav1.ConditionTrue, reasons.MemberClusterJoined, "Member cluster has successfully joined the fleet"}
	}
	return result{metav1.ConditionFalse, reasons.MemberClusterLeft, "Member cluster has left the fleet"}
}

// healthyCondition shows whether the hub receives the agent's heartbeats, and whether the agent
// reports a healthy API server.
func healthyCondition(o observed) result {
	healthy := membership.AgentCondition(o.Report, clusterv1beta1.ConditionHealthy)
	switch {
	case o.Revoked:
		return result{metav1.ConditionUnknown, o.revoked().reason, o.revoked().message}
	case !o.Seen():
		return result{metav1.ConditionUnknown, reasons.AgentUnseen, "no heartbeat of the member agent has been seen yet"}
	case o.Lost():
		return result{metav1.ConditionFalse, reasons.AgentLost,
			o.WithCleanup(fmt.Sprintf("no heartbeat of the member agent since %s", o.LastSeen().UTC().Format(time.RFC3339)))}
	case o.health != nil && o.health.Unhealthy && !failed(healthy):
		shown := cmp.Or(meta.FindStatusCondition(o.before.Conditions, clusterv1beta1.ConditionHealthy), &metav1.Condition{})
		return result{metav1.ConditionFalse, reasons.AgentUnhealthy, shown.Message}
	case failed(healthy) && (o.health == nil || o.health.Unhealthy):
		return result{metav1.ConditionFalse, reasons.AgentUnhealthy, healthy.Message}
	}
	return result{metav1.ConditionTrue, reasons.MemberClusterHealthy, "the member agent sends heartbeats and its API server is healthy"}
}

// revoked returns the content of a revoked member's conditions.
func (o observed) revoked() result {
	if o.AccessLeft != "" {
		return result{metav1.ConditionFalse, reasons.Revoking, membership.Revoking(o.AccessLeft)}
	}
	return result{metav1.ConditionFalse, reasons.Revoked,
		fmt.Sprintf("revoked by annotation %s: the identity has no access, and the hub places nothing; deliveries on the cluster stay. To "+
			"restore the access: muster revoke %s --undo, or kubectl annotate membercluster %s %s- and then set config.memberNamespace of "+
			"the chart member-agent to the namespace in the condition Joined",
			clusterv1beta1.AnnotationRevoked, o.Name, o.Name, clusterv1beta1.AnnotationRevoked)}
}

func beatOf(agents []clusterv1beta1.AgentStatus) time.Time {
	if agent := clusterv1beta1.FindAgent(agents, clusterv1beta1.MemberAgent); agent != nil {
		return agent.LastReceivedHeartbeat.Time
	}
	return time.Time{}
}

// usable reports whether the identity may get rights.
func (o observed) usable() bool {
	return identityProblem(o.identity, o.systemNamespace) == "" && o.identityHolder == ""
}

// native reports whether Muster's own agent acts for the member. A renewed Lease proves it,
// regardless of the report. While a member is Lost, its next agent may be of another kind.
func (o observed) native() bool {
	reports := o.Report != nil && o.Report.Status.AgentVersion != ""
	return (reports || o.Liveness.Source == liveness.InLease) && o.Liveness.State != liveness.Lost
}
