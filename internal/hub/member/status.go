package member

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
)

// refreshLastSeen is how old a shown beat may get while a member is online.
const refreshLastSeen = 5 * time.Minute

// describe computes the status. It is the only place that sets it.
func describe(o observed, generation int64, leaving membership.Departure, now time.Time) clusterv1beta1.MemberClusterStatus {
	after := *o.before.DeepCopy()
	set := func(kind string, v verdict) {
		condition := metav1.Condition{Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: generation}
		condition.LastTransitionTime = metav1.NewTime(now)
		// While a member leaves, only its countdown would change: that is no reason for a write.
		if old := meta.FindStatusCondition(after.Conditions, kind); old != nil && v.reason == reasonLeaving && old.Reason == v.reason && leaving.Says(old.Message) {
			return
		}
		meta.SetStatusCondition(&after.Conditions, condition)
	}
	if o.deleted.IsZero() {
		set(clusterv1beta1.ConditionReadyToJoin, judgeReadyToJoin(o))
	}
	set(clusterv1beta1.ConditionJoined, judgeJoined(o, leaving))
	set(clusterv1beta1.ConditionHealthy, judgeHealthy(o))
	if o.policyProblem != "" {
		set(clusterv1beta1.ConditionSupported, verdict{metav1.ConditionFalse, membership.ReasonLeavePolicyInvalid, o.policyProblem})
	} else {
		meta.RemoveStatusCondition(&after.Conditions, clusterv1beta1.ConditionSupported)
	}
	if reason, message := membership.NotPruned(o.report); reason != "" {
		set(clusterv1beta1.ConditionPruned, verdict{metav1.ConditionFalse, reason, message})
	} else {
		meta.RemoveStatusCondition(&after.Conditions, clusterv1beta1.ConditionPruned)
	}
	if o.report != nil {
		rollUp(&after, o, generation, now)
	}
	if said, known := o.reach().Judge(); known {
		status := metav1.ConditionFalse
		if said.InUse {
			status = metav1.ConditionTrue
		}
		set(clusterv1beta1.ConditionHubConfigured, verdict{status, said.Reason, said.Message})
	} else {
		meta.RemoveStatusCondition(&after.Conditions, clusterv1beta1.ConditionHubConfigured)
	}
	written := !equality.Semantic.DeepEqual(after, o.before)
	after.ClockSkewSeconds = liveness.ShownSkew(o.before.ClockSkewSeconds, o.clockSkew, written)
	return after
}

// rollUp copies the report. Times alone are no reason for a write: they follow what else changes, and the beat every five minutes.
func rollUp(after *clusterv1beta1.MemberClusterStatus, o observed, generation int64, now time.Time) {
	report := o.report.Status.DeepCopy()
	for _, condition := range report.Conditions {
		condition.ObservedGeneration = generation
		meta.SetStatusCondition(&after.Conditions, condition)
	}
	for name, value := range report.Properties {
		if old, known := after.Properties[name]; known && old.Value == value.Value {
			report.Properties[name] = old
		}
	}
	after.Properties = report.Properties
	usage := report.ResourceUsage
	usage.ObservationTime = after.ResourceUsage.ObservationTime
	if !equality.Semantic.DeepEqual(usage, after.ResourceUsage) {
		after.ResourceUsage = report.ResourceUsage
	}
	after.Namespaces = report.Namespaces
	shown := o.recordedBeat()
	transition := !equality.Semantic.DeepEqual(after.Conditions, o.before.Conditions)
	for i := range report.AgentStatus {
		agent := &report.AgentStatus[i]
		for c := range agent.Conditions {
			agent.Conditions[c].ObservedGeneration = generation
		}
		if agent.Type != clusterv1beta1.MemberAgent {
			old := clusterv1beta1.FindAgent(o.before.AgentStatus, agent.Type)
			if old != nil && agent.LastReceivedHeartbeat.Sub(old.LastReceivedHeartbeat.Time).Abs() < refreshLastSeen {
				agent.LastReceivedHeartbeat = old.LastReceivedHeartbeat
			}
			continue
		}
		agent.LastReceivedHeartbeat = metav1.NewTime(shown)
		if shown.IsZero() { // a report is a sign of life, too
			agent.LastReceivedHeartbeat = metav1.NewTime(now.Truncate(time.Second))
		}
		if newest := o.lastSeen(); transition || newest.Sub(shown) >= refreshLastSeen {
			agent.LastReceivedHeartbeat = metav1.NewTime(newest.Truncate(time.Second))
		}
	}
	after.AgentStatus = report.AgentStatus
	if clusterv1beta1.FindAgent(after.AgentStatus, clusterv1beta1.MemberAgent) == nil && !o.lastBeat.IsZero() {
		// It beats and has not reported yet.
		after.AgentStatus = append(after.AgentStatus, clusterv1beta1.AgentStatus{
			Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(o.lastBeat.Truncate(time.Second)),
		})
	}
}
