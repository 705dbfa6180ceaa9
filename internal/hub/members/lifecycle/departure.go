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

// Step is what happens next to a member whose record was deleted.
type Step string

// The steps, in their order.
const (
	// WaitForAgent: the agent is asked to leave and has not answered, or has to remove first what it
	// has applied.
	WaitForAgent Step = "WaitForAgent"
	// RemoveNamespace: the agent has left, or none can be asked; its access ends, then its namespace is deleted, then the finalizer is removed.
	RemoveNamespace Step = "RemoveNamespace"
	// RemoveFinalizer: the member has no namespace, or one that is being deleted.
	RemoveFinalizer Step = "RemoveFinalizer"
)

// Leaver is what decides on the next step.
type Leaver struct {
	Observed
	// Timeout is how long the agent may take to answer.
	Timeout time.Duration
	// Unasked: the agent is not asked, because what is on the member stays there anyway.
	Unasked bool
	// CannotAnswer says why the agent cannot be asked, as the predicate of a sentence about the agent; empty if it can.
	CannotAnswer string
	// Problem is shown in front of the progress; empty if there is none.
	Problem string
	// Emptying says what the agent has to remove before the hub asks it to leave; empty if nothing.
	Emptying string
	// Definition is the CustomResourceDefinition without which the hub does not know what the agent
	// has to remove; empty if it is there.
	Definition string
	// Leftovers says what others have left on the record that keeps it when the member has left; empty if nothing.
	Leftovers string
}

// Departure is how far a member is with leaving.
type Departure struct {
	Step    Step
	Message string
	// Unanswered says why the agent did not answer, as the predicate of a sentence about the agent, so that what it applied is left behind; empty if
	// the agent answered or was not asked.
	Unanswered string
	// Deadline is when the wait is over; zero if nothing is waited for.
	Deadline time.Time

	progress string
}

// Depart decides the next step.
func (l Leaver) Depart(now time.Time) Departure {
	joined := membership.AgentCondition(l.Report, clusterv1beta1.ConditionJoined)
	deadline := l.Deleted.Add(l.Timeout)
	switch {
	case l.NamespaceState != membernamespace.NamespaceOurs:
		return Departure{Step: RemoveFinalizer}
	case l.Unasked, !l.Seen(), joined != nil && joined.Status == metav1.ConditionFalse:
		return Departure{Step: RemoveNamespace}
	case l.CannotAnswer != "":
		return Departure{Step: RemoveNamespace, Unanswered: l.CannotAnswer}
	case l.Report == nil:
		return Departure{Step: RemoveNamespace, Unanswered: "has no report any more to answer in"}
	case !now.Before(deadline) && l.Emptying != "":
		return Departure{Step: RemoveNamespace, Unanswered: "did not remove in time what it has applied"}
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

// MessageAfter returns the message to show after another one. A shorter remaining time alone is no reason for a write.
func (d Departure) MessageAfter(shown string) string {
	if strings.HasPrefix(shown, "leaving: "+d.progress+", at most until ") {
		return shown
	}
	return d.Message
}

// leavePolicy returns what becomes of what is placed on a member when it leaves, and what is wrong with the annotation of the record about that, or "".
// A value that the hub does not know removes nothing.
func leavePolicy(record client.Object, otherwise clusterv1beta1.LeavePolicy) (policy clusterv1beta1.LeavePolicy, problem string) {
	asked, given := record.GetAnnotations()[clusterv1beta1.AnnotationLeavePolicy]
	switch policy := clusterv1beta1.LeavePolicy(asked); {
	case !given:
		return otherwise, ""
	case policy == clusterv1beta1.LeaveDelete, policy == clusterv1beta1.LeaveOrphan:
		return policy, ""
	}
	return clusterv1beta1.LeaveOrphan, fmt.Sprintf("annotation %s is %q: want Delete or Orphan; until then what is placed on the member stays when it leaves",
		clusterv1beta1.AnnotationLeavePolicy, asked)
}
