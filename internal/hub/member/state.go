package member

import (
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
)

// The life of a MemberCluster:
//
//	                  prepared              agent answers            deleted
//	NotReadyToJoin ─────────────► waiting ─────────────────► Joined ─────────► Leaving ──► (gone)
//	      ▲                          │                          ▲ │                          ▲
//	      └── namespace or identity in the way                  │ ▼ silence                  │ agent has left, never came,
//	                                                     Healthy=True / False                │ or the wait is over
//	                                                                                         └──────────────
const (
	reasonReadyToJoin          = "MemberClusterReadyToJoin"
	reasonNamespaceTaken       = "NamespaceTaken"
	reasonNamespaceTerminating = "NamespaceTerminating"
	reasonIdentityInvalid      = "IdentityInvalid"
	reasonIdentityMissing      = "IdentityMissing"
	reasonJoined               = "MemberClusterJoined"
	reasonLeft                 = "MemberClusterLeft"
	reasonLeaving              = clusterv1beta1.ReasonLeaving
	reasonJoinUnknown          = "MemberClusterJoinStateUnknown"
	reasonHealthy              = "MemberClusterHealthy"
	reasonAgentLost            = "AgentLost"
	reasonAgentUnseen          = "AgentUnseen"
	reasonAgentUnhealthy       = "AgentUnhealthy"
)

// observed is all that the status and the next step of a MemberCluster depend on.
type observed struct {
	name, memberNamespace string
	deleted               time.Time // zero unless it is being deleted
	namespace             membership.NamespaceState
	identity              rbacv1.Subject
	// leavePolicy is what becomes of what is placed on it; policyProblem says what is wrong with what the record asks for.
	leavePolicy   clusterv1beta1.LeavePolicy
	policyProblem string
	// accountMissing: the identity is a ServiceAccount that does not exist.
	accountMissing bool
	report         *clusterv1beta1.InternalMemberCluster // nil if there is none
	liveness       liveness.State
	lastBeat       time.Time // zero if the hub has seen none since it started
	clockSkew      *int64    // by how many seconds the member's clock is ahead; nil if not known
	before         clusterv1beta1.MemberClusterStatus
	// hub is where the agent should reach it, turn how long its turn to move there is away.
	hub  *clusterv1beta1.HubAddress
	turn time.Duration
}

func (o observed) reach() membership.Reach { return membership.Reach{Desired: o.hub, Report: o.report} }

// verdict is one condition.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
}

// identityProblem says what is wrong with the identity that the record asks for, or "".
func identityProblem(s rbacv1.Subject) string {
	switch {
	case s.Kind != rbacv1.ServiceAccountKind && s.Kind != rbacv1.UserKind && s.Kind != rbacv1.GroupKind:
		return fmt.Sprintf("spec.identity.kind is %q: want ServiceAccount, User or Group", s.Kind)
	case s.Name == "":
		return "spec.identity.name is empty"
	case s.Kind == rbacv1.ServiceAccountKind && s.Namespace == "":
		return fmt.Sprintf("spec.identity.namespace is empty: say in which namespace ServiceAccount %s is, for example fleet-system", s.Name)
	case s.Kind == rbacv1.ServiceAccountKind && s.APIGroup != "":
		return fmt.Sprintf("spec.identity.apiGroup is %q: it is empty for a ServiceAccount", s.APIGroup)
	}
	return ""
}

// judgeReadyToJoin says whether an agent would find all that it needs.
func judgeReadyToJoin(o observed) verdict {
	not := func(reason, message string) verdict { return verdict{metav1.ConditionFalse, reason, message} }
	switch problem := identityProblem(o.identity); {
	case o.namespace == membership.NamespaceTaken:
		return not(reasonNamespaceTaken, fmt.Sprintf("namespace %s exists and was not made for this MemberCluster: delete it, or delete the MemberCluster and create it under another name", o.memberNamespace))
	case o.namespace == membership.NamespaceTerminating:
		return not(reasonNamespaceTerminating, fmt.Sprintf("namespace %s is being deleted; it is made anew when it is gone", o.memberNamespace))
	case problem != "":
		return not(reasonIdentityInvalid, problem)
	case o.accountMissing:
		return not(reasonIdentityMissing, fmt.Sprintf("ServiceAccount %s/%s does not exist: kubectl create serviceaccount %s -n %s", o.identity.Namespace, o.identity.Name, o.identity.Name, o.identity.Namespace))
	}
	return verdict{metav1.ConditionTrue, reasonReadyToJoin, "Member cluster is ready to join the fleet"}
}

// judgeJoined rolls up whether the agent has joined, or how far it is with leaving.
func judgeJoined(o observed, leaving membership.Departure) verdict {
	joined := membership.AgentCondition(o.report, clusterv1beta1.ConditionJoined)
	switch {
	case !o.deleted.IsZero():
		return verdict{metav1.ConditionTrue, reasonLeaving, leaving.Message}
	case joined == nil || joined.Status == metav1.ConditionUnknown:
		message := fmt.Sprintf("waiting for the member agent: install the chart member-agent on the cluster with config.memberClusterName=%s", o.name)
		if joined != nil && joined.Message != "" {
			message = joined.Message
		}
		return verdict{metav1.ConditionUnknown, reasonJoinUnknown, message}
	case joined.Status == metav1.ConditionTrue:
		return verdict{metav1.ConditionTrue, reasonJoined, "Member cluster has successfully joined the fleet"}
	}
	return verdict{metav1.ConditionFalse, reasonLeft, "Member cluster has left the fleet"}
}

// depart decides the next step of leaving.
func depart(o observed, now time.Time, patience time.Duration) membership.Departure {
	return membership.Leaver{Since: o.deleted, Patience: patience, Namespace: o.namespace, Seen: o.seen(), Report: o.report}.Depart(now)
}

// judgeHealthy says whether the member is alive and well: the hub judges silence, the agent its API server.
func judgeHealthy(o observed) verdict {
	recorded := meta.FindStatusCondition(o.before.Conditions, clusterv1beta1.ConditionHealthy)
	recordedLost := recorded != nil && recorded.Reason == reasonAgentLost
	healthy := membership.AgentCondition(o.report, clusterv1beta1.ConditionHealthy)
	switch {
	case !o.seen():
		return verdict{metav1.ConditionUnknown, reasonAgentUnseen, "no heartbeat of the member agent has been seen yet"}
	case o.liveness == liveness.Lost, o.liveness == liveness.Unknown && recordedLost:
		return verdict{metav1.ConditionFalse, reasonAgentLost, fmt.Sprintf("no heartbeat of the member agent since %s", o.lastSeen().UTC().Format(time.RFC3339))}
	case healthy != nil && healthy.Status == metav1.ConditionFalse:
		return verdict{metav1.ConditionFalse, reasonAgentUnhealthy, healthy.Message}
	}
	return verdict{metav1.ConditionTrue, reasonHealthy, "the member agent beats and its API server is well"}
}

// seen says whether the agent was ever heard of.
func (o observed) seen() bool { return !o.lastBeat.IsZero() || !o.recordedBeat().IsZero() }

// recordedBeat is the beat that the record shows.
func (o observed) recordedBeat() time.Time { return beatOf(o.before.AgentStatus) }

func beatOf(agents []clusterv1beta1.AgentStatus) time.Time {
	if agent := clusterv1beta1.FindAgent(agents, clusterv1beta1.MemberAgent); agent != nil {
		return agent.LastReceivedHeartbeat.Time
	}
	return time.Time{}
}

// lastSeen is the newest beat that the hub knows of, by its own clock.
func (o observed) lastSeen() time.Time {
	if recorded := o.recordedBeat(); recorded.After(o.lastBeat) {
		return recorded
	}
	return o.lastBeat
}

// native says whether Muster's own agent serves the member. While a member is lost its next agent may be another.
func (o observed) native() bool {
	return o.report != nil && o.report.Status.AgentVersion != "" && o.liveness != liveness.Lost
}
