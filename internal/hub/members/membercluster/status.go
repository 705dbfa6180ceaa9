package membercluster

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/kube"
)

// describe computes the status. Only Kept and dropUnknown also set fields of it.
func describe(o observed, generation int64, departure lifecycle.Departure, now time.Time) clusterv1beta1.MemberClusterStatus {
	after := *o.before.DeepCopy()
	set := func(kind string, v result) {
		condition := metav1.Condition{
			Type: kind, Status: v.status, Reason: v.reason, Message: kube.Clip(v.message, maxMessage), ObservedGeneration: generation,
		}
		condition.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&after.Conditions, condition)
	}
	if o.Deleted.IsZero() {
		set(clusterv1beta1.ConditionReadyToJoin, readyToJoinCondition(o))
	}
	set(clusterv1beta1.ConditionJoined, joinedCondition(o, departure))
	set(clusterv1beta1.ConditionHealthy, healthyCondition(o))
	if validated := o.validation.condition(); validated.reason != "" {
		set(clusterv1beta1.ConditionDeletionValidated, validated)
	}
	if o.leftovers != "" {
		set(clusterv1beta1.ConditionLeftoversRemoved, result{metav1.ConditionFalse, reasons.KubeFleetFinalizers, o.leftovers})
	} else {
		meta.RemoveStatusCondition(&after.Conditions, clusterv1beta1.ConditionLeftoversRemoved)
	}
	if o.Revoked {
		after.AgentStatus, after.AgentVersion = nil, "" // the next agent is a new one
	}
	describeCredential(&after, o, set)
	if o.Report != nil {
		rollUp(&after, o, generation, now)
	}
	for _, condition := range o.Conditions() {
		if condition.Reason == "" {
			meta.RemoveStatusCondition(&after.Conditions, condition.Type)
		} else {
			set(condition.Type, result{condition.Status, condition.Reason, condition.Message})
		}
	}
	written := !equality.Semantic.DeepEqual(after, o.before)
	after.ClockSkewSeconds = liveness.ShownSkew(o.before.ClockSkewSeconds, o.Liveness.ClockSkew, written)
	after.HeartbeatDelay = liveness.ShownDelay(o.before.HeartbeatDelay, o.Liveness.Delay, written)
	return after
}

// rollUp copies the report. A changed time alone justifies no write. Times change with other
// fields, and the heartbeat once it is older than Refresh.
func rollUp(after *clusterv1beta1.MemberClusterStatus, o observed, generation int64, now time.Time) {
	report := o.Report.Status.DeepCopy()
	rollUpConditions(after, report.Conditions, generation)
	after.Properties = lifecycle.RollUpProperties(report.Properties, after.Properties)
	usage := report.ResourceUsage
	usage.ObservationTime = after.ResourceUsage.ObservationTime
	if !equality.Semantic.DeepEqual(usage, after.ResourceUsage) {
		after.ResourceUsage = report.ResourceUsage
	}
	after.Namespaces, after.AgentVersion = report.Namespaces, report.AgentVersion
	shown := o.RecordedBeat
	transition := !equality.Semantic.DeepEqual(after.Conditions, o.before.Conditions)
	for i := range report.AgentStatus {
		agent := &report.AgentStatus[i]
		for c := range agent.Conditions {
			agent.Conditions[c].ObservedGeneration = generation
		}
		if agent.Type != clusterv1beta1.MemberAgent {
			old := clusterv1beta1.FindAgent(o.before.AgentStatus, agent.Type)
			if old != nil && agent.LastReceivedHeartbeat.Sub(old.LastReceivedHeartbeat.Time).Abs() < o.Refresh {
				agent.LastReceivedHeartbeat = old.LastReceivedHeartbeat
			}
			continue
		}
		agent.LastReceivedHeartbeat = metav1.NewTime(shown)
		if shown.IsZero() { // a report is a heartbeat, too
			agent.LastReceivedHeartbeat = metav1.NewTime(now.Truncate(time.Second))
		}
		if newest := o.LastSeen(); transition || newest.Sub(shown) >= o.Refresh {
			agent.LastReceivedHeartbeat = metav1.NewTime(newest.Truncate(time.Second))
		}
	}
	after.AgentStatus = report.AgentStatus
	if clusterv1beta1.FindAgent(after.AgentStatus, clusterv1beta1.MemberAgent) == nil && !o.Liveness.LastBeat.IsZero() {
		// The agent sends heartbeats and has not reported yet.
		after.AgentStatus = append(after.AgentStatus, clusterv1beta1.AgentStatus{
			Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(o.Liveness.LastBeat.Truncate(time.Second)),
		})
	}
}
