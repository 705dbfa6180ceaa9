package membership

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	healthyMessage = "the agent sends heartbeats and its API server is healthy"
	joinedMessage  = "the cluster has joined the fleet"
)

// AgentState is the state of a member's agent according to the membership object.
type AgentState string

// The states of an agent.
const (
	// AgentUnknown: the controller of the membership object has not observed the member yet.
	AgentUnknown AgentState = ""
	// AgentAwaited: no agent has ever sent a heartbeat, and nothing prevents it.
	AgentAwaited AgentState = "Awaited"
	// AgentAbsent: no agent has ever sent a heartbeat, and the message of the status gives the cause.
	AgentAbsent AgentState = "Absent"
	AgentOnline AgentState = "Online"
	// AgentUnhealthy: the agent is online and reports an unhealthy API server of its cluster.
	AgentUnhealthy AgentState = "Unhealthy"
	AgentLost      AgentState = "Lost"
	// AgentLeft: the agent has left without a request or, on a MemberCluster, after one.
	AgentLeft AgentState = "Left"
	// AgentRevoked: the identity of a joined agent is gone, or the membership object is revoked.
	AgentRevoked AgentState = "Revoked"
	// AgentWithoutNamespace: the namespace of a joined member is terminating, or belongs to another
	// owner.
	AgentWithoutNamespace AgentState = "WithoutNamespace"
)

// Revoking returns the message about a revoked member with remaining access.
func Revoking(left string) string {
	return fmt.Sprintf("revoked by annotation %s, but not complete: %s remains, and the hub did not create it or may not delete it: delete "+
		"it yourself; the hub checks again within 30 s", clusterv1beta1.AnnotationRevoked, left)
}

// Status is the state of a member according to its membership object, in the same words for a
// Cluster and a MemberCluster.
type Status struct {
	Agent AgentState
	// Ready reports whether the agent is online and, on a Cluster, everything is deployed.
	Ready bool
	// Reason and Message come from the condition behind Ready.
	Reason, Message string
	// Joined and Healthy are conditions without a type; their status is empty if the membership object
	// has no such information.
	Joined, Healthy metav1.Condition
}

// ClusterStatus reads the status of a Cluster. Its condition Ready is about the agent and, while
// the agent is online, about deliveries. The agent's report, if not nil, shows the health of its
// API server.
func ClusterStatus(record *fleet.ClusterStatus, report *clusterv1beta1.InternalMemberCluster) Status {
	ready := kube.FindCondition(record.Conditions, fleet.ConditionReady)
	if ready == nil {
		return Status{}
	}
	s := Status{
		Agent: agentOfCluster(record, ready), Ready: ready.Status == corev1.ConditionTrue, Reason: ready.Reason, Message: ready.Message,
	}
	unhealthy := AgentCondition(report, clusterv1beta1.ConditionHealthy)
	if s.Agent == AgentOnline && unhealthy != nil && unhealthy.Status == metav1.ConditionFalse {
		s.Agent = AgentUnhealthy
	}
	joined := metav1.Condition{Status: metav1.ConditionTrue, Reason: reasons.ClusterJoined, Message: joinedMessage}
	unknown := metav1.Condition{Status: metav1.ConditionUnknown, Reason: ready.Reason, Message: ready.Message}
	switch s.Agent {
	case AgentAwaited, AgentAbsent:
		s.Joined, s.Healthy = unknown, unknown
	case AgentRevoked, AgentWithoutNamespace:
		s.Joined, s.Healthy = metav1.Condition{Status: metav1.ConditionFalse, Reason: ready.Reason, Message: ready.Message}, unknown
	case AgentLost:
		s.Joined, s.Healthy = joined, unknown
	case AgentUnhealthy:
		s.Joined, s.Healthy = joined, metav1.Condition{Status: metav1.ConditionFalse, Reason: reasons.AgentUnhealthy, Message: unhealthy.Message}
	default:
		s.Joined, s.Healthy = joined, metav1.Condition{Status: metav1.ConditionTrue, Reason: reasons.AgentHealthy, Message: healthyMessage}
	}
	return s
}

// agentOfCluster returns the state from the reason of Ready. A departure hides this reason; then
// the field has the state. After a rollback of the hub, the reason is newer than the field.
func agentOfCluster(record *fleet.ClusterStatus, ready *fleet.Condition) AgentState {
	switch {
	case ready.Reason == reasons.Leaving:
		return AgentState(record.AgentState)
	case ready.Status == corev1.ConditionTrue:
		return AgentOnline
	case ready.Reason == reasons.AgentLost:
		return AgentLost
	case ready.Reason == reasons.IdentityMissing, ready.Reason == reasons.Revoked, ready.Reason == reasons.Revoking:
		return AgentRevoked
	case ready.Reason == reasons.ManagedElsewhere:
		return AgentUnknown
	case record.Agent.LastSeen.IsZero() && ready.Reason == reasons.WaitCheckIn:
		return AgentAwaited
	case record.Agent.LastSeen.IsZero():
		return AgentAbsent
	case ready.Reason == reasons.NamespaceTaken, ready.Reason == reasons.NamespaceTerminating:
		return AgentWithoutNamespace
	case ready.Reason == reasons.AgentLeft:
		return AgentLeft
	}
	return AgentOnline
}

// MemberClusterStatus reads the status of a MemberCluster.
func MemberClusterStatus(record *clusterv1beta1.MemberClusterStatus) (s Status) {
	joined := meta.FindStatusCondition(record.Conditions, clusterv1beta1.ConditionJoined)
	healthy := meta.FindStatusCondition(record.Conditions, clusterv1beta1.ConditionHealthy)
	if joined != nil {
		s.Joined = metav1.Condition{Status: joined.Status, Reason: joined.Reason, Message: joined.Message}
	}
	if healthy == nil {
		return s
	}
	s.Ready, s.Reason, s.Message = healthy.Status == metav1.ConditionTrue, healthy.Reason, healthy.Message
	s.Healthy = metav1.Condition{Status: healthy.Status, Reason: healthy.Reason, Message: healthy.Message}
	switch { // missing heartbeats prove nothing about the control plane
	case s.Ready:
		s.Healthy.Reason, s.Healthy.Message = reasons.AgentHealthy, healthyMessage
	case healthy.Reason == reasons.AgentLost:
		s.Healthy.Status = metav1.ConditionUnknown
	case healthy.Status == metav1.ConditionFalse:
		s.Healthy.Reason = reasons.AgentUnhealthy
	}
	switch {
	case joined == nil:
	case joined.Reason == reasons.Revoked, joined.Reason == reasons.Revoking:
		s.Agent = AgentRevoked
	case joined.Status == metav1.ConditionFalse:
		s.Agent = AgentLeft
	case joined.Status == metav1.ConditionUnknown, healthy.Reason != reasons.AgentLost && healthy.Status == metav1.ConditionUnknown:
		s.Agent = AgentAwaited
	case healthy.Reason == reasons.AgentLost:
		s.Agent = AgentLost
	case s.Ready:
		s.Agent = AgentOnline
	default:
		s.Agent = AgentUnhealthy
	}
	return s
}

// AgentCondition returns a condition of the member's agent about itself, or nil.
func AgentCondition(report *clusterv1beta1.InternalMemberCluster, kind string) *metav1.Condition {
	if report == nil {
		return nil
	}
	if agent := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent); agent != nil {
		return meta.FindStatusCondition(agent.Conditions, kind)
	}
	return nil
}
