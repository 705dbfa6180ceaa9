package member

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/membership"
)

// step is what a MemberCluster that is being deleted needs next.
type step string

const (
	// waitForAgent: the agent is asked to leave and has not answered.
	waitForAgent step = "WaitForAgent"
	// removeNamespace: the agent has left, or nobody is there to ask; its access ends, its namespace and then the record go.
	removeNamespace step = "RemoveNamespace"
	// letGo: there is no namespace, or it is going; the record goes.
	letGo step = "LetGo"
)

// departure is how far a member is with leaving.
type departure struct {
	step    step
	message string
	// progress is what the agent says of it; empty if nothing.
	progress string
	// forced: the agent did not answer in time, and what it holds is left behind.
	forced bool
	// wake is when the wait is over; zero if only an event ends it.
	wake time.Time
}

// depart decides the next step of leaving.
func depart(o observed, now time.Time, patience time.Duration) departure {
	joined := agentCondition(o, clusterv1beta1.ConditionJoined)
	deadline := o.deleted.Add(patience)
	switch {
	case o.namespace != membership.NamespaceOurs:
		return departure{step: letGo}
	case o.report == nil, !o.seen():
		return departure{step: removeNamespace}
	case joined != nil && joined.Status == metav1.ConditionFalse:
		return departure{step: removeNamespace}
	case !now.Before(deadline):
		return departure{step: removeNamespace, forced: true}
	}
	progress := "waiting for the member agent to answer"
	if joined != nil && joined.Reason == clusterv1beta1.ReasonLeaving {
		progress = joined.Message
	}
	return departure{step: waitForAgent, wake: deadline, progress: progress, message: fmt.Sprintf("leaving: %s, at most until %s (%s)",
		progress, deadline.UTC().Format(time.RFC3339), deadline.Sub(now).Round(time.Second))}
}

// says tells whether a condition says what is known of the progress; that less time is left is no news.
func (d departure) says(message string) bool {
	return strings.HasPrefix(message, "leaving: "+d.progress+", at most until ")
}

// leavePolicy is what becomes of what is placed on a member when it leaves, and what is wrong with what the record says about that, or "".
// What nobody understands must not remove anything.
func leavePolicy(annotations map[string]string) (policy clusterv1beta1.LeavePolicy, problem string) {
	asked, given := annotations[clusterv1beta1.AnnotationLeavePolicy]
	switch policy := clusterv1beta1.LeavePolicy(asked); {
	case !given:
		return clusterv1beta1.LeaveDelete, ""
	case policy == clusterv1beta1.LeaveDelete, policy == clusterv1beta1.LeaveOrphan:
		return policy, ""
	}
	return clusterv1beta1.LeaveOrphan, fmt.Sprintf("annotation %s is %q: want Delete or Orphan; until then what is placed on the member stays when it leaves",
		clusterv1beta1.AnnotationLeavePolicy, asked)
}
