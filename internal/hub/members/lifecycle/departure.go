package lifecycle

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

// Step is the next step for a member after the deletion of its membership object.
type Step string

// The steps, in their order.
const (
	// WaitForAgent: the hub waits until the agent has left, or has first removed everything it
	// applied.
	WaitForAgent Step = "WaitForAgent"
	// RemoveNamespace: the agent has left or cannot receive the request. The hub ends its access, then
	// deletes its namespace, then removes the finalizer.
	RemoveNamespace Step = "RemoveNamespace"
	// RemoveFinalizer: the member has no namespace, or a terminating one.
	RemoveFinalizer Step = "RemoveFinalizer"
)

// Leaver holds the inputs for the next step.
type Leaver struct {
	Observed
	// Timeout bounds the wait for the agent's answer.
	Timeout time.Duration
	// Unasked: the hub does not notify the agent, because everything on the member stays there anyway.
	Unasked bool
	// CannotAnswer gives the cause if the hub cannot notify the agent, as the predicate of a sentence
	// about the agent; empty if it can.
	CannotAnswer string
	// Problem precedes the progress in the message; empty if there is none.
	Problem string
	// Emptying names the resources to remove before the hub requests the agent to leave; empty if
	// none.
	Emptying string
	// Definition is a deleted CustomResourceDefinition of resources to remove first; empty if none is
	// missing.
	Definition string
	// Kept is the reason why the member does not begin to leave; empty if it does. The hub checks
	// again after KeptRetry.
	Kept      string
	KeptRetry time.Duration
	// Begins is the time when a kept member began to leave; zero if nothing kept it.
	Begins time.Time
	// Leftovers names finalizers or objects of others on the membership object after the member has
	// left; empty if none.
	Leftovers string
}

// Departure is the progress of a leaving member.
type Departure struct {
	Step    Step
	Message string
	// Unanswered gives the cause of a missing answer, as the predicate of a sentence about the agent.
	// The agent then leaves behind everything it applied. Empty if the agent answered or got no
	// request.
	Unanswered string
	// Deadline ends the wait; zero if the hub waits for nothing.
	Deadline time.Time

	progress string
}

// Depart decides the next step.
func (l Leaver) Depart(now time.Time) Departure {
	joined := membership.AgentCondition(l.Report, clusterv1beta1.ConditionJoined)
	deadline := l.Deleted.Add(l.Timeout)
	if l.Begins.After(l.Deleted) {
		deadline = l.Begins.Add(l.Timeout)
	}
	switch {
	case l.NamespaceState != membernamespace.NamespaceOurs:
		return Departure{Step: RemoveFinalizer}
	case l.Unasked, !l.Seen(), joined != nil && joined.Status == metav1.ConditionFalse:
		return Departure{Step: RemoveNamespace}
	case l.CannotAnswer != "":
		return Departure{Step: RemoveNamespace, Unanswered: l.CannotAnswer}
	case l.Report == nil:
		return Departure{Step: RemoveNamespace, Unanswered: "can no longer answer, because its report is gone"}
	case !now.Before(deadline) && l.Emptying != "":
		return Departure{Step: RemoveNamespace, Unanswered: "did not remove its deliveries in time"}
	case !now.Before(deadline) && l.Uninstall && joined != nil && joined.Reason == clusterv1beta1.ReasonLeaving:
		return Departure{Step: RemoveNamespace, Unanswered: "did not leave in time: " + joined.Message}
	case !now.Before(deadline):
		return Departure{Step: RemoveNamespace, Unanswered: "did not answer"}
	}
	progress := cmp.Or(l.Emptying, "waiting for the member agent to answer")
	if joined != nil && joined.Reason == clusterv1beta1.ReasonLeaving {
		progress = joined.Message
	}
	if l.Problem != "" {
		progress = l.Problem + "; " + progress
	}
	return Departure{Step: WaitForAgent, Deadline: deadline, progress: progress, Message: fmt.Sprintf("leaving: %s, at most until %s (%s)",
		progress, deadline.UTC().Format(time.RFC3339), deadline.Sub(now).Round(time.Second))}
}

// MessageAfter returns the message that replaces the shown one. A shorter remaining time alone
// justifies no write.
func (d Departure) MessageAfter(shown string) string {
	if strings.HasPrefix(shown, "leaving: "+d.progress+", at most until ") {
		return shown
	}
	return d.Message
}

// leavePolicy returns the policy for workloads on a leaving member, and the problem with the
// membership object's annotation, or "". An unknown value removes nothing.
func leavePolicy(record client.Object, otherwise clusterv1beta1.LeavePolicy) (policy clusterv1beta1.LeavePolicy, problem string) {
	asked, given := record.GetAnnotations()[clusterv1beta1.AnnotationLeavePolicy]
	switch policy := clusterv1beta1.LeavePolicy(asked); {
	case !given:
		return otherwise, ""
	case policy == clusterv1beta1.LeaveDelete, policy == clusterv1beta1.LeaveOrphan:
		return policy, ""
	}
	return clusterv1beta1.LeaveOrphan,
		fmt.Sprintf("annotation %s is %q: want Delete or Orphan; until then the deliveries stay on the member when it leaves",
			clusterv1beta1.AnnotationLeavePolicy, asked)
}
