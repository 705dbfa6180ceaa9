package membership

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// Reasons of the conditions of records. Controllers of records write them; everybody else asks for a Status.
const (
	ReasonWaitCheckIn          = "WaitCheckIn"
	ReasonAgentLost            = "AgentLost"
	ReasonAgentLeft            = "AgentLeft"
	ReasonIdentityMissing      = "IdentityMissing"
	ReasonNamespaceTaken       = "NamespaceTaken"
	ReasonNamespaceTerminating = "NamespaceTerminating"
	ReasonRevoked              = "Revoked"
	// ReasonRevoking: the member is revoked, and something that gives it access is left.
	ReasonRevoking = "Revoking"
	// ReasonAgentTooOld: the agent does not know the name of its member namespace, and deploys nothing.
	ReasonAgentTooOld = "AgentTooOld"
	// ReasonManagedElsewhere: a label of the Cluster says that another manager has it.
	ReasonManagedElsewhere = "ManagedElsewhere"

	reasonAgentHealthy   = "AgentHealthy"
	reasonAgentUnhealthy = "AgentUnhealthy"
	reasonClusterJoined  = "ClusterJoined"
)

const (
	healthyMessage = "the agent beats and its API server is well"
	joinedMessage  = "the cluster has joined the fleet"
)

// AgentState is what the record of a member says of the member's agent.
type AgentState string

// The states of an agent.
const (
	// AgentUnknown: the controller of the record has not observed the member yet.
	AgentUnknown AgentState = ""
	// AgentAwaited: no agent has ever sent a heartbeat, and nothing keeps one from doing so.
	AgentAwaited AgentState = "Awaited"
	// AgentAbsent: no agent has ever sent a heartbeat, and the message of the status says what keeps it from doing so.
	AgentAbsent AgentState = "Absent"
	AgentOnline AgentState = "Online"
	// AgentUnhealthy: the agent is online and says that the API server of its cluster is not well.
	AgentUnhealthy AgentState = "Unhealthy"
	AgentLost      AgentState = "Lost"
	// AgentLeft: the agent has left without being asked to, or a MemberCluster's as asked.
	AgentLeft AgentState = "Left"
	// AgentRevoked: the identity of an agent that had joined is gone, or the record is revoked.
	AgentRevoked AgentState = "Revoked"
	// AgentWithoutNamespace: the namespace of a member that had joined is being deleted, or is somebody else's.
	AgentWithoutNamespace AgentState = "WithoutNamespace"
)

// Revoking is the message about a revoked member of whose access something is left.
func Revoking(left string) string {
	return fmt.Sprintf("revoked by annotation %s, and not ended yet: %s is left, which the hub did not make or may not delete: "+
		"delete it; the hub looks again within 30 s", clusterv1beta1.AnnotationRevoked, left)
}

// Status is what a record says of its member, in the same words for both kinds of record.
type Status struct {
	Agent AgentState
	// Ready says whether the record is ready: the agent is online, and on a Cluster everything is deployed.
	Ready bool
	// Reason and Message are those of the condition that says so.
	Reason, Message string
	// Joined and Healthy are conditions without a type; their status is empty if the record says nothing.
	Joined, Healthy metav1.Condition
}

// ClusterStatus reads the status of a Cluster, whose condition Ready is about its agent and, while that is online, about what is delivered to it.
// The agent's word on its API server is in the report, which may be nil.
func ClusterStatus(record *fleet.ClusterStatus, report *clusterv1beta1.InternalMemberCluster) Status {
	ready := kube.FindCondition(record.Conditions, fleet.ConditionReady)
	if ready == nil {
		return Status{}
	}
	s := Status{Agent: agentOfCluster(record, ready), Ready: ready.Status == corev1.ConditionTrue, Reason: ready.Reason, Message: ready.Message}
	unhealthy := AgentCondition(report, clusterv1beta1.ConditionHealthy)
	if s.Agent == AgentOnline && unhealthy != nil && unhealthy.Status == metav1.ConditionFalse {
		s.Agent = AgentUnhealthy
	}
	joined := metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonClusterJoined, Message: joinedMessage}
	unknown := metav1.Condition{Status: metav1.ConditionUnknown, Reason: ready.Reason, Message: ready.Message}
	switch s.Agent {
	case AgentAwaited, AgentAbsent:
		s.Joined, s.Healthy = unknown, unknown
	case AgentRevoked, AgentWithoutNamespace:
		s.Joined, s.Healthy = metav1.Condition{Status: metav1.ConditionFalse, Reason: ready.Reason, Message: ready.Message}, unknown
	case AgentLost:
		s.Joined, s.Healthy = joined, unknown
	case AgentUnhealthy:
		s.Joined, s.Healthy = joined, metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonAgentUnhealthy, Message: unhealthy.Message}
	default:
		s.Joined, s.Healthy = joined, metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonAgentHealthy, Message: healthyMessage}
	}
	return s
}

func agentOfCluster(record *fleet.ClusterStatus, ready *fleet.Condition) AgentState {
	switch {
	case ready.Status == corev1.ConditionTrue:
		return AgentOnline
	case ready.Reason == ReasonAgentLost:
		return AgentLost
	case ready.Reason == ReasonIdentityMissing, ready.Reason == ReasonRevoked, ready.Reason == ReasonRevoking:
		return AgentRevoked
	case ready.Reason == ReasonManagedElsewhere:
		return AgentUnknown
	case record.Agent.LastSeen.IsZero() && ready.Reason == ReasonWaitCheckIn:
		return AgentAwaited
	case record.Agent.LastSeen.IsZero():
		return AgentAbsent
	case ready.Reason == ReasonNamespaceTaken, ready.Reason == ReasonNamespaceTerminating:
		return AgentWithoutNamespace
	case ready.Reason == ReasonAgentLeft:
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
	switch { // silence says nothing of the control plane
	case s.Ready:
		s.Healthy.Reason, s.Healthy.Message = reasonAgentHealthy, healthyMessage
	case healthy.Reason == ReasonAgentLost:
		s.Healthy.Status = metav1.ConditionUnknown
	case healthy.Status == metav1.ConditionFalse:
		s.Healthy.Reason = reasonAgentUnhealthy
	}
	switch {
	case joined == nil:
	case joined.Reason == ReasonRevoked, joined.Reason == ReasonRevoking:
		s.Agent = AgentRevoked
	case joined.Status == metav1.ConditionFalse:
		s.Agent = AgentLeft
	case joined.Status == metav1.ConditionUnknown, healthy.Reason != ReasonAgentLost && healthy.Status == metav1.ConditionUnknown:
		s.Agent = AgentAwaited
	case healthy.Reason == ReasonAgentLost:
		s.Agent = AgentLost
	case s.Ready:
		s.Agent = AgentOnline
	default:
		s.Agent = AgentUnhealthy
	}
	return s
}

// AgentCondition returns a condition that the member's agent writes about itself, or nil.
func AgentCondition(report *clusterv1beta1.InternalMemberCluster, kind string) *metav1.Condition {
	if report == nil {
		return nil
	}
	if agent := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent); agent != nil {
		return meta.FindStatusCondition(agent.Conditions, kind)
	}
	return nil
}
