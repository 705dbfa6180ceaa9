package inventory

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// Reasons of the conditions of a profile, beside those taken over from the record.
const (
	reasonHealthy        = "AgentHealthy"
	reasonAgentUnhealthy = "AgentUnhealthy"
	reasonAgentLost      = "AgentLost"
	reasonClusterJoined  = "ClusterJoined"
)

// What the doors write to their records and is told apart here.
const (
	clusterIdentityMissing = "IdentityMissing"
	clusterProcessed       = "Processed"
)

const (
	healthyMessage = "the agent beats and its API server is well"
	joinedMessage  = "the cluster has joined the fleet"
)

// record is what a profile depends on, the same for both doors.
type record struct {
	object client.Object
	// settled: its own controller has judged it.
	settled         bool
	joined, healthy metav1.Condition
	// version as the record has it.
	version string
}

// ofMemberCluster reads a MemberCluster, whose conditions have all of the agent's report in them.
func ofMemberCluster(mc *clusterv1beta1.MemberCluster) *record {
	r := &record{object: mc}
	joined := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionJoined)
	healthy := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionHealthy)
	if joined == nil || healthy == nil {
		return r
	}
	r.settled = true
	r.joined = condition(joined.Status, joined.Reason, joined.Message)
	switch {
	case healthy.Status == metav1.ConditionTrue:
		r.healthy = condition(metav1.ConditionTrue, reasonHealthy, healthyMessage)
	case healthy.Status == metav1.ConditionFalse && healthy.Reason != reasonAgentLost:
		r.healthy = condition(metav1.ConditionFalse, reasonAgentUnhealthy, healthy.Message)
	default: // silence says nothing of the control plane
		r.healthy = condition(metav1.ConditionUnknown, healthy.Reason, healthy.Message)
	}
	return r
}

// ofCluster reads a Cluster, whose Ready condition is about its agent and, in any other reason, about what is delivered to it.
func ofCluster(cluster *fleet.Cluster, report *clusterv1beta1.InternalMemberCluster) *record {
	r := &record{object: cluster, version: cluster.Status.Agent.KubernetesVersion}
	ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady)
	processed := kube.FindCondition(cluster.Status.Conditions, clusterProcessed)
	if ready == nil || processed == nil {
		return r
	}
	r.settled = true
	unhealthy := agentUnhealthy(report)
	switch seen := !cluster.Status.Agent.LastSeen.IsZero(); {
	case seen && (ready.Reason == clusterIdentityMissing || processed.Status != "True"):
		r.joined = condition(metav1.ConditionFalse, ready.Reason, ready.Message)
		r.healthy = condition(metav1.ConditionUnknown, ready.Reason, ready.Message)
	case !seen:
		r.joined = condition(metav1.ConditionUnknown, ready.Reason, ready.Message)
		r.healthy = r.joined
	default:
		r.joined = condition(metav1.ConditionTrue, reasonClusterJoined, joinedMessage)
		r.healthy = condition(metav1.ConditionTrue, reasonHealthy, healthyMessage)
		if ready.Reason == reasonAgentLost {
			r.healthy = condition(metav1.ConditionUnknown, reasonAgentLost, ready.Message)
		} else if unhealthy != nil {
			r.healthy = condition(metav1.ConditionFalse, reasonAgentUnhealthy, unhealthy.Message)
		}
	}
	return r
}

// agentUnhealthy returns the agent's word that the API server of its member is not well, or nil.
func agentUnhealthy(report *clusterv1beta1.InternalMemberCluster) *metav1.Condition {
	if report == nil {
		return nil
	}
	for _, agent := range report.Status.AgentStatus {
		healthy := meta.FindStatusCondition(agent.Conditions, clusterv1beta1.ConditionHealthy)
		if agent.Type == clusterv1beta1.MemberAgent && healthy != nil && healthy.Status == metav1.ConditionFalse {
			return healthy
		}
	}
	return nil
}

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: message}
}
