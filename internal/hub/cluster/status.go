package cluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/hub/rollup"
	"github.com/muster-fleet/muster/internal/kube"
)

// conditionProcessed says whether the member namespace is there.
const conditionProcessed = "Processed"

// stateWaitCheckIn is what upstream tools look for in status.display.state.
const stateWaitCheckIn = "WaitCheckIn"

// recordedLost says whether the status as it is calls the agent lost.
func (o observed) recordedLost() bool {
	ready := kube.FindCondition(o.before.Conditions, fleet.ConditionReady)
	return ready != nil && ready.Reason == ReasonAgentLost
}

// recordedMissing says whether the status as it is says that the identity is missing.
func (o observed) recordedMissing() bool {
	ready := kube.FindCondition(o.before.Conditions, fleet.ConditionReady)
	return ready != nil && ready.Reason == ReasonIdentityMissing
}

// describe computes the status. It is the only place that sets what this package owns of it.
func describe(o observed, leaving membership.Departure, now time.Time) fleet.ClusterStatus {
	after := *o.before.DeepCopy()
	if o.namespace == membership.NamespaceOurs {
		after.Namespace = o.memberNamespace
	}
	said := judge(o)
	processed := kube.Condition(conditionProcessed, o.namespace == membership.NamespaceOurs, "NamespaceReady", "")
	if o.namespace != membership.NamespaceOurs {
		processed.Reason, processed.Message = said.reason, said.message
	}
	after.Conditions = kube.SetCondition(after.Conditions, now, processed)
	if !o.deleted.IsZero() {
		said = verdict{reason: reasonLeaving, message: leaving.Message}
	}
	// While a member leaves, only its countdown would change: that is no reason for a write.
	if old := kube.FindCondition(after.Conditions, fleet.ConditionReady); said.reason != reasonLeaving || old == nil || old.Reason != said.reason || !leaving.Says(old.Message) {
		after.Conditions = kube.SetCondition(after.Conditions, now, kube.Condition(fleet.ConditionReady, said.ready, said.reason, said.message))
	}
	if o.policyProblem == "" {
		after.Conditions = kube.RemoveCondition(after.Conditions, fleet.ConditionSupported)
	} else {
		after.Conditions = kube.SetCondition(after.Conditions, now, kube.Condition(fleet.ConditionSupported, false, membership.ReasonLeavePolicyInvalid, o.policyProblem))
	}
	if reason, message := membership.NotPruned(o.report); reason == "" {
		after.Conditions = kube.RemoveCondition(after.Conditions, clusterv1beta1.ConditionPruned)
	} else {
		after.Conditions = kube.SetCondition(after.Conditions, now, kube.Condition(clusterv1beta1.ConditionPruned, false, reason, message))
	}
	after.Summary, after.ResourceCounts = o.bundles, o.resources
	after.Display.ReadyBundles = rollup.Ready(o.bundles)
	// The report is shown from the first beat on: one write for both.
	if o.identity == membership.Native && o.joined() {
		after.Agent = describeAgent(o)
		describeReach(&after, o, now)
		if o.report != nil && o.report.Status.Nodes != nil {
			after.Display.ReadyNodes = fmt.Sprintf("%d/%d", o.report.Status.Nodes.Ready, o.report.Status.Nodes.Total)
			after.Display.SampleNode = o.report.Status.Nodes.Sample
		}
	}
	if o.identity == membership.Legacy {
		after.Conditions = kube.RemoveCondition(after.Conditions, fleet.ConditionHubConfigured)
		describeLegacyNodes(&after)
	}
	after.Display.State = string(rollup.Worst(o.bundles))
	if after.Agent.LastSeen.IsZero() {
		after.Display.State = stateWaitCheckIn
	}
	if o.identity == membership.Native {
		written := !equality.Semantic.DeepEqual(after, o.before)
		after.Agent.ClockSkewSeconds = liveness.ShownSkew(o.before.Agent.ClockSkewSeconds, o.clockSkew, written)
	}
	return after
}

// describeReach shows how the agent reaches the hub.
func describeReach(after *fleet.ClusterStatus, o observed, now time.Time) {
	if used := o.reach().InUse(); used != nil {
		after.APIServerURL, after.APIServerCAHash, after.AgentTLSMode = used.APIServerURL, used.APIServerCAHash, used.AgentTLSMode
	}
	said, known := o.reach().Judge()
	if !known {
		after.Conditions = kube.RemoveCondition(after.Conditions, fleet.ConditionHubConfigured)
		return
	}
	after.Conditions = kube.SetCondition(after.Conditions, now, kube.Condition(fleet.ConditionHubConfigured, said.InUse, said.Reason, said.Message))
}

// describeAgent rolls the report up; upstream agents write status.agent themselves.
func describeAgent(o observed) fleet.AgentStatus {
	agent := *o.before.Agent.DeepCopy()
	if seen := lastSeen(o); !seen.IsZero() {
		agent.LastSeen = metav1.NewTime(seen.Truncate(time.Second))
	}
	if o.report != nil {
		agent.Namespace = o.report.Status.AgentNamespace
		agent.Version = o.report.Status.AgentVersion
		agent.KubernetesVersion = o.report.Status.KubernetesVersion
	}
	return agent
}

// describeLegacyNodes shows the nodes that upstream agents up to 0.9 report.
func describeLegacyNodes(after *fleet.ClusterStatus) {
	agent := after.Agent
	if total := agent.ReadyNodes + agent.NonReadyNodes; total > 0 {
		after.Display.ReadyNodes = fmt.Sprintf("%d/%d", agent.ReadyNodes, total)
	}
	for _, names := range [][]string{agent.ReadyNodeNames, agent.NonReadyNodeNames} {
		if len(names) > 0 {
			after.Display.SampleNode = names[0]
			return
		}
	}
}
