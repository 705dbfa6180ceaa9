package agentbundle

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// describe returns the condition for a decision. Before an agent joins, there is no such condition;
// the condition Ready names the reason.
func describe(o observed, d decision, failed []types.NamespacedName, failure string) (fleet.Condition, bool) {
	reason := d.state
	if reason == send {
		reason = Updating
	}
	message := messages[reason]
	switch reason {
	case NotJoined:
		return fleet.Condition{}, false
	case WaitingForTurn:
		if d.behind.Name != "" {
			message = fmt.Sprintf("the hub tries another version of the agent on Cluster %s first", d.behind)
		}
	case RolloutStopped:
		message = stoppedMessage("Cluster", d.behind, failed, failure)
	case DidNotComeBack:
		message = fmt.Sprintf("the hub requested the update of the agent at %s, and the agent has not come back: %s; check Bundle %s, and the "+
			"Pods of Deployment fleet-agent on the cluster",
			o.sentAt.UTC().Format(time.RFC3339), cmp.Or(o.failure, fmt.Sprintf("it was not ready after %s", confirmTimeout)),
			naming.AgentBundle(o.cluster.Name))
	case OutsideWindow:
		message = "the agent keeps its version " + membership.OutsideWindow(&o.cluster.Status)
	case NameTaken:
		message = fmt.Sprintf("Bundle %s has the name of the agent's Bundle, and the hub did not create it: delete it",
			naming.AgentBundle(o.cluster.Name))
	default: // the message is set above
	}
	return kube.Condition(fleet.ConditionAgentUpToDate, reason == UpToDate, string(reason), message), true
}

// stoppedMessage names the first agent with a failure, and the others.
func stoppedMessage(kind string, behind types.NamespacedName, failed []types.NamespacedName, failure string) string {
	return fmt.Sprintf("the agent keeps its version, because the agent of %s %s did not come back with the new version (%s): correct the "+
		"settings or the image, or label that %s %s=true to continue without it%s",
		kind, nameOf(behind), cmp.Or(failure, "its agent did not become ready"), kind, fleet.LabelNonManagedAgent,
		alsoFailed(failed, behind))
}

// nameOf returns the name of a Cluster with its workspace, or only the name of a MemberCluster.
func nameOf(member types.NamespacedName) string { return strings.TrimPrefix(member.String(), "/") }

// reconciled returns the condition Reconciled beside AgentUpToDate. The hub writes both at once, so
// Reconciled costs no write of its own.
func reconciled(agent fleet.Condition) fleet.Condition {
	if State(agent.Reason) == NameTaken {
		return kube.Condition(fleet.ConditionReconciled, false, agent.Reason, agent.Message)
	}
	return kube.Condition(fleet.ConditionReconciled, true, "", "")
}

// alsoFailed names the other members with a failed agent, without the first, up to a limit.
func alsoFailed(failed []types.NamespacedName, first types.NamespacedName) string {
	var names []string
	for _, key := range failed {
		if key != first {
			names = append(names, nameOf(key))
		}
	}
	if len(names) == 0 {
		return ""
	}
	shown := names[:min(len(names), listedFailures-1)]
	text := "; the same applies to " + strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// messages holds the messages determined by the state alone.
var messages = map[State]string{
	Updating:       "the agent updates itself, with the hub's settings and the settings of the Cluster",
	WaitingForTurn: "the hub updates some agents at a time, and this one waits for its turn",
	Offline:        "the agent does not match the hub's settings and the Cluster, and gets the update when it is back",
	NotManaged:     "the label " + fleet.LabelNonManagedAgent + " leaves the agent to you: upgrade it with helm",
	SwitchedOff:    "manageAgent is false in the hub's settings: upgrade the agent with helm",
	ForeignAgent: "the agent is not Muster's, and the hub does not upgrade it; to replace it, run on that cluster: helm -n " +
		"cattle-fleet-system upgrade --install fleet-agent fleet/fleet-agent with the values of a registration token",
	SharedCredential: "the agent uses the credential of the earlier Rancher Fleet agent, which may take over again at any time, and " +
		"the hub does not manage it: upgrade it with helm; with the values of a new registration token it gets its own credential, and " +
		"the hub manages it",
	CannotBeManaged: "the agent does not deploy (fleetAgent.delivery=false), runs outside its cluster, or is of a version that cannot " +
		"replace itself: upgrade it with helm",
	Paused: "the Cluster is paused: nothing is deployed there, not the agent either",
}

// reportIn returns the delay before a Cluster reports the state of its agent; zero for now.
func (o observed) reportIn(state State, now time.Time) time.Duration {
	if kube.FindCondition(o.cluster.Status.Conditions, fleet.ConditionAgentUpToDate) != nil {
		return 0
	}
	return adopting(state, o.identified, o.sentAt, now)
}

// firstTurn is the time for an agent with a new identity to get its turn. Such an agent has just
// been installed, and many members may join at once.
const firstTurn = 2 * time.Minute

// adopting returns the delay before the first report of an agent with a new identity. The hub may
// send the agent its version some time after the identity, if many members join.
func adopting(state State, identified, sentAt, now time.Time) time.Duration {
	since, limit := identified, controller.Adoption
	switch state {
	case send:
		since = now
	case Updating:
		if sentAt.After(identified) {
			since = sentAt
		}
	case WaitingForTurn:
		limit = firstTurn
	default: // no update is on its way
		return 0
	}
	if age := now.Sub(since); age >= 0 { // else the hub's clock is behind the API server's
		return max(0, limit-age)
	}
	return 0
}

// report writes the condition if it changes. It leaves the first one to the controller of the
// Cluster for a moment, and returns the time left.
func (c *Controller) report(ctx context.Context, o observed, d decision) (time.Duration, error) {
	failure := ""
	if d.behind.Namespace == o.cluster.Namespace { // text written by a member must not appear in other workspaces
		failure = c.rollout.failureOf(d.behind)
	}
	var failed []types.NamespacedName
	if d.failed > 0 {
		failed = c.rollout.failedWith(o.desired.common)
	}
	from := kube.ReasonOf(o.cluster.Status.Conditions, fleet.ConditionAgentUpToDate)
	condition, managed := describe(o, d, failed, failure)
	add := func(member client.Object) {
		status := &member.(*fleet.Cluster).Status
		status.Conditions = kube.SetCondition(status.Conditions, c.Clock.Now(), condition)
		status.Conditions = kube.SetCondition(status.Conditions, c.Clock.Now(), reconciled(condition))
	}
	if managed && from == "" {
		if wait := c.share(o.cluster, !o.cluster.Status.Agent.LastSeen.IsZero(), add); wait > 0 {
			return wait, nil
		}
	}
	if c.Offers.Withdraw(client.ObjectKeyFromObject(o.cluster)) {
		from = ""
	}
	after := o.cluster.DeepCopy()
	if managed {
		add(after)
	} else {
		for _, unknown := range []string{fleet.ConditionAgentUpToDate, fleet.ConditionReconciled} {
			after.Status.Conditions = kube.RemoveCondition(after.Status.Conditions, unknown)
		}
	}
	if err := kube.PatchStatus(ctx, c.Client, o.cluster, after); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if after.ResourceVersion != o.cluster.ResourceVersion {
		c.expected.Expect(client.ObjectKeyFromObject(after), after)
	}
	announce(ctx, c.Recorder, o.cluster, from, condition.Reason, condition.Message)
	return 0, nil
}

// announce logs a transition and emits an Event, after the status was written.
func announce(ctx context.Context, recorder events.EventRecorder, member client.Object, from, to, message string) {
	if from == to {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Agent changed state", "from", from, "to", to, "message", message)
	switch State(to) {
	case DidNotComeBack, NameTaken:
		recorder.Eventf(member, nil, corev1.EventTypeWarning, to, "Manage", "%s", message)
	case UpToDate:
		if from != "" {
			recorder.Eventf(member, nil, corev1.EventTypeNormal, to, "Manage", "the agent matches the hub's settings")
		}
	default: // an intermediate state, or nothing to warn of
	}
}
