package cluster

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// conditionProcessed shows whether the member namespace exists.
const conditionProcessed = "Processed"

// maxLabelsText bounds the message about labels.
const maxLabelsText = 2048

// stateWaitCheckIn is the value of status.display.state for upstream tools.
const stateWaitCheckIn = "WaitCheckIn"

// describe computes the status. Only Kept and yield also set fields of this package.
func describe(o observed, departure lifecycle.Departure, now time.Time) fleet.ClusterStatus {
	after := *o.before.DeepCopy()
	switch { // deliveries to a revoked Cluster wait for another registration of an agent
	case o.Revoked:
		after.Namespace = ""
	case o.NamespaceState == membernamespace.NamespaceOurs && (o.Epoch == 0 || o.agent != ""):
		after.Namespace = o.Namespace
	}
	ready := readiness(o)
	after.AgentState = string(ready.agent)
	processed := kube.Condition(conditionProcessed, o.NamespaceState == membernamespace.NamespaceOurs, reasons.NamespaceReady, "")
	if o.NamespaceState != membernamespace.NamespaceOurs {
		processed.Reason, processed.Message = ready.reason, ready.message
	}
	after.Conditions = kube.SetCondition(after.Conditions, now, processed)
	if !o.Deleted.IsZero() {
		shown := cmp.Or(kube.FindCondition(after.Conditions, fleet.ConditionReady), &fleet.Condition{})
		ready = result{reason: reasons.Leaving, message: departure.MessageAfter(shown.Message)}
	}
	after.Conditions = kube.SetCondition(after.Conditions, now, kube.Condition(fleet.ConditionReady, ready.ready, ready.reason, ready.message))
	for _, condition := range o.Conditions() {
		switch {
		case condition.Type == fleet.ConditionHubConfigured && (o.agent == "" || !o.Seen()):
		case condition.Reason == "":
			after.Conditions = kube.RemoveCondition(after.Conditions, condition.Type)
		default:
			after.Conditions = kube.SetCondition(after.Conditions, now,
				kube.Condition(condition.Type, condition.Status == metav1.ConditionTrue, condition.Reason, condition.Message))
		}
	}
	describeLabels(&after, o.labels, now)
	describeCredential(&after, o, now)
	describeApproval(&after, o, now)
	after.Summary, after.ResourceCounts = o.bundles, o.resources
	after.Display.ReadyBundles = rollup.Ready(o.bundles)
	describeSources(&after, o)
	// The first heartbeat and the report are shown by one write.
	if o.agent == membership.Native && o.Seen() {
		after.Agent = describeAgent(o)
		if used := o.Address().InUse(); used != nil {
			after.APIServerURL, after.APIServerCAHash, after.AgentTLSMode = used.APIServerURL, used.APIServerCAHash, used.AgentTLSMode
		}
		if o.Report != nil {
			describeFacts(&after, &o.Report.Status)
		}
	}
	if o.agent == membership.Legacy {
		describeLegacyNodes(&after)
	}
	after.Display.State = o.displayState(after)
	if o.agent == membership.Native {
		written := !equality.Semantic.DeepEqual(after, o.before)
		after.Agent.ClockSkewSeconds = liveness.ShownSkew(o.before.Agent.ClockSkewSeconds, o.Liveness.ClockSkew, written)
		after.HeartbeatDelay = liveness.ShownDelay(o.before.HeartbeatDelay, o.Liveness.Delay, written)
	}
	return after
}

// displayState returns the state for upstream tools.
func (o observed) displayState(after fleet.ClusterStatus) string {
	switch {
	case o.Revoked:
		return reasons.Revoked
	case after.Agent.LastSeen.IsZero():
		return stateWaitCheckIn
	case o.Quarantined:
		return reasons.Quarantined
	}
	return string(rollup.Worst(o.bundles))
}

// describeLabels shows the requested labels dropped by the hub; if it dropped none, the labels
// stamped by the token.
func describeLabels(after *fleet.ClusterStatus, labels membernamespace.LabelRecord, now time.Time) {
	var accepted fleet.Condition
	switch {
	case len(labels.Dropped) > 0:
		accepted = kube.Condition(fleet.ConditionLabelsAccepted, false, reasons.LabelsDropped,
			kube.Clip("the Cluster did not get these labels of its registration request: "+strings.Join(labels.Dropped, "; "), maxLabelsText))
	case len(labels.Stamped) > 0:
		accepted = kube.Condition(fleet.ConditionLabelsAccepted, true, reasons.LabelsStamped,
			kube.Clip(fmt.Sprintf("ClusterRegistrationToken %s has stamped %s", labels.Token, k8slabels.Set(labels.Stamped)), maxLabelsText))
	default:
		after.Conditions = kube.RemoveCondition(after.Conditions, fleet.ConditionLabelsAccepted)
		return
	}
	after.Conditions = kube.SetCondition(after.Conditions, now, accepted)
}

// describeApproval shows the state of the approval, if the workspace requires one.
func describeApproval(after *fleet.ClusterStatus, o observed, now time.Time) {
	said := kube.Condition(fleet.ConditionDeliveryApproved, true, string(approvalGiven), "")
	switch o.approval {
	case approvalUnneeded:
		after.Conditions = kube.RemoveCondition(after.Conditions, fleet.ConditionDeliveryApproved)
		return
	case approvalAwaited:
		said = kube.Condition(fleet.ConditionDeliveryApproved, false, reasons.ApprovalRequired, o.awaitsApproval())
	case approvalGiven, approvalInherited:
	}
	after.Conditions = kube.SetCondition(after.Conditions, now, said)
}

// describeAgent shows the report of a native agent; upstream agents write status.agent themselves.
func describeAgent(o observed) fleet.AgentStatus {
	agent := *o.before.Agent.DeepCopy()
	if agent.Account = ""; o.account.shared {
		agent.Account = string(o.account.uid)
	}
	if seen := lastSeen(o); !seen.IsZero() {
		agent.LastSeen = metav1.NewTime(seen.Truncate(time.Second))
	}
	if o.Report != nil {
		agent.Namespace = o.Report.Status.AgentNamespace
		agent.Version = o.Report.Status.AgentVersion
		agent.KubernetesVersion = o.Report.Status.KubernetesVersion
	}
	return agent
}

// describeFacts shows the reported facts and nodes. A report without an agent is new and empty.
func describeFacts(after *fleet.ClusterStatus, report *clusterv1beta1.InternalMemberClusterStatus) {
	if len(report.AgentStatus) > 0 {
		after.Properties = lifecycle.RollUpProperties(report.Properties, after.Properties)
	}
	if report.Nodes != nil {
		after.Display.ReadyNodes, after.Display.SampleNode = fmt.Sprintf("%d/%d", report.Nodes.Ready, report.Nodes.Total), report.Nodes.Sample
	}
}

// describeLegacyNodes shows the nodes in reports of upstream agents up to 0.9.
func describeLegacyNodes(after *fleet.ClusterStatus) {
	agent := after.Agent
	after.Properties = nil
	after.Display.ReadyNodes, after.Display.SampleNode = "", "" // an earlier native agent may have reported more
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
