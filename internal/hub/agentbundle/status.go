package agentbundle

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// describe is the condition for a verdict. An agent that was never heard of has none; the condition Ready says what it waits for.
func describe(s seen, said verdict, behindSays string) (fleet.Condition, bool) {
	reason := said.state
	if reason == tell {
		reason = Updating
	}
	message := messages[reason]
	switch reason {
	case NotJoined:
		return fleet.Condition{}, false
	case WaitingForTurn:
		if said.behind.Name != "" {
			message = fmt.Sprintf("another version of the agent is tried on Cluster %s first", said.behind)
		}
	case RolloutStopped:
		message = fmt.Sprintf("the agent keeps its version, because that of Cluster %s did not come back with the new one (%s): correct the settings or the image, "+
			"or label that Cluster %s=true to go on without it", said.behind, cmp.Or(behindSays, "its agent did not become ready"), fleet.LabelNonManagedAgent)
	case DidNotComeBack:
		message = fmt.Sprintf("the agent was told to replace itself at %s and is not back: %s; look at Bundle %s, and at the pods of Deployment fleet-agent on the cluster",
			s.toldAt.UTC().Format(time.RFC3339), cmp.Or(s.failure, fmt.Sprintf("it was not ready after %s", patience)), BundleName(s.cluster.Name))
	case NameTaken:
		message = fmt.Sprintf("Bundle %s was not made by the hub and stands where that of the agent should be: delete it", BundleName(s.cluster.Name))
	}
	return kube.Condition(fleet.ConditionAgentUpToDate, reason == UpToDate, string(reason), message), true
}

// messages are those that do not depend on more than the state.
var messages = map[State]string{
	Updating:       "the agent replaces itself by what the hub's settings and the Cluster say",
	WaitingForTurn: "the agents are updated some at a time, and others have their turn",
	Offline:        "the agent is not what the hub's settings and the Cluster say, and is told when it is back",
	NotManaged:     "the label " + fleet.LabelNonManagedAgent + " leaves the agent to you: upgrade it with helm",
	SwitchedOff:    "manageAgent is false in the hub's settings: upgrade the agent with helm",
	ForeignAgent: "the agent is not Muster's and is left alone; to change over run on that cluster: helm -n cattle-fleet-system upgrade --install " +
		"fleet-agent fleet/fleet-agent with the values of a registration token",
	CannotBeManaged: "the agent does not deploy (fleetAgent.delivery=false), or is of a version that cannot replace itself: upgrade it with helm",
	Paused:          "the Cluster is paused: nothing is deployed there, not the agent either",
}

// report writes the condition if it says something new.
func (c *Controller) report(ctx context.Context, s seen, said verdict) error {
	before := kube.FindCondition(s.cluster.Status.Conditions, fleet.ConditionAgentUpToDate)
	behindSays := ""
	if said.behind.Namespace == s.cluster.Namespace { // what a member writes is not shown in the workspaces of others
		behindSays = c.table.failureOf(said.behind)
	}
	condition, known := describe(s, said, behindSays)
	after := s.cluster.DeepCopy()
	if known {
		after.Status.Conditions = kube.SetCondition(after.Status.Conditions, c.Clock.Now(), condition)
	} else {
		after.Status.Conditions = kube.RemoveCondition(after.Status.Conditions, fleet.ConditionAgentUpToDate)
	}
	err := kube.PatchStatus(ctx, c.Client, s.cluster, after)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // somebody else wrote; that wakes this Cluster again
	}
	if err != nil {
		return err
	}
	if after.ResourceVersion != s.cluster.ResourceVersion {
		c.written.Store(after)
	}
	c.announce(ctx, s.cluster, before, condition)
	return nil
}

// announce tells of a transition, after it was written.
func (c *Controller) announce(ctx context.Context, cluster *fleet.Cluster, before *fleet.Condition, after fleet.Condition) {
	from := ""
	if before != nil {
		from = before.Reason
	}
	if from == after.Reason {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Agent changed state", "from", from, "to", after.Reason, "message", after.Message)
	switch State(after.Reason) {
	case DidNotComeBack, NameTaken:
		c.Recorder.Eventf(cluster, nil, corev1.EventTypeWarning, after.Reason, "Manage", "%s", after.Message)
	case UpToDate:
		if from != "" {
			c.Recorder.Eventf(cluster, nil, corev1.EventTypeNormal, after.Reason, "Manage", "the agent is what the hub's settings and the Cluster say")
		}
	}
}
