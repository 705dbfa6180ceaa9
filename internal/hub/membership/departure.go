package membership

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// ReasonLeavePolicyInvalid is that of the condition Supported of a record whose leave policy nobody understands.
const ReasonLeavePolicyInvalid = "LeavePolicyInvalid"

// Step is what a member whose record is being deleted needs next.
type Step string

// The steps, in their order.
const (
	// WaitForAgent: the agent is asked to leave and has not answered.
	WaitForAgent Step = "WaitForAgent"
	// RemoveNamespace: the agent has left, or nobody is there to ask; its access ends, its namespace and then the record go.
	RemoveNamespace Step = "RemoveNamespace"
	// LetGo: there is no namespace, or it is going; the record goes.
	LetGo Step = "LetGo"
)

// Leaver is all that decides on the next step.
type Leaver struct {
	// Since is when the record was deleted, Patience how long its agent is waited for.
	Since    time.Time
	Patience time.Duration
	// Namespace says what stands at the name of the member namespace.
	Namespace NamespaceState
	// Seen says that an agent was ever heard of.
	Seen bool
	// Unasked says that the agent is not asked, because what is on the member stays there anyway.
	Unasked bool
	// Mute says why nobody can answer, after "the agent of the record"; empty if somebody can.
	Mute string
	// Report of the member; nil if there is none.
	Report *clusterv1beta1.InternalMemberCluster
	// Trouble is what the record has to say beside how far it is with leaving; empty if nothing.
	Trouble string
}

// Departure is how far a member is with leaving.
type Departure struct {
	Step    Step
	Message string
	// Unanswered says what kept the agent from answering, after "the agent of the record"; whatever it holds is left behind. It is empty
	// if the agent answered or was not to.
	Unanswered string
	// Wake is when the wait is over; zero if only an event ends it.
	Wake time.Time

	// progress is what is known of it; empty if nothing.
	progress string
}

// Depart decides the next step.
func (l Leaver) Depart(now time.Time) Departure {
	joined := AgentCondition(l.Report, clusterv1beta1.ConditionJoined)
	deadline := l.Since.Add(l.Patience)
	switch {
	case l.Namespace != NamespaceOurs:
		return Departure{Step: LetGo}
	case l.Unasked, !l.Seen:
		return Departure{Step: RemoveNamespace}
	case l.Mute != "":
		return Departure{Step: RemoveNamespace, Unanswered: l.Mute}
	case l.Report == nil:
		return Departure{Step: RemoveNamespace, Unanswered: "has no report any more to answer in"}
	case joined != nil && joined.Status == metav1.ConditionFalse:
		return Departure{Step: RemoveNamespace}
	case !now.Before(deadline):
		return Departure{Step: RemoveNamespace, Unanswered: "did not answer"}
	}
	progress := "waiting for the member agent to answer"
	if joined != nil && joined.Reason == clusterv1beta1.ReasonLeaving {
		progress = joined.Message
	}
	if l.Trouble != "" {
		progress = l.Trouble + "; " + progress
	}
	return Departure{Step: WaitForAgent, Wake: deadline, progress: progress, Message: fmt.Sprintf("leaving: %s, at most until %s (%s)",
		progress, deadline.UTC().Format(time.RFC3339), deadline.Sub(now).Round(time.Second))}
}

// Says tells whether a condition says what is known of the progress; that less time is left is no news.
func (d Departure) Says(message string) bool {
	return strings.HasPrefix(message, "leaving: "+d.progress+", at most until ")
}

// AgentCondition returns what the member's agent says of itself, or nil.
func AgentCondition(report *clusterv1beta1.InternalMemberCluster, kind string) *metav1.Condition {
	if report == nil {
		return nil
	}
	if agent := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent); agent != nil {
		return meta.FindStatusCondition(agent.Conditions, kind)
	}
	return nil
}

// LeavePolicy is what becomes of what is placed on a member when it leaves, and what is wrong with what the record says about that, or "".
// What nobody understands must not remove anything.
func LeavePolicy(record client.Object, unsaid clusterv1beta1.LeavePolicy) (policy clusterv1beta1.LeavePolicy, problem string) {
	asked, given := record.GetAnnotations()[clusterv1beta1.AnnotationLeavePolicy]
	switch policy := clusterv1beta1.LeavePolicy(asked); {
	case !given:
		return unsaid, ""
	case policy == clusterv1beta1.LeaveDelete, policy == clusterv1beta1.LeaveOrphan:
		return policy, ""
	}
	return clusterv1beta1.LeaveOrphan, fmt.Sprintf("annotation %s is %q: want Delete or Orphan; until then what is placed on the member stays when it leaves",
		clusterv1beta1.AnnotationLeavePolicy, asked)
}

// RecordLeftovers keeps, after the record is gone, that a member was removed without its agent's answer, and returns the sentence.
func (m Member) RecordLeftovers(ctx context.Context, c client.Client, live client.Reader, systemNamespace, unanswered string) (string, error) {
	placed, err := m.Placed(ctx, live)
	if err != nil {
		return "", err
	}
	record, name := "MemberCluster "+m.Name, "left-"+m.Name
	if m.Workspace != "" {
		// Clusters of several workspaces may have one name.
		record, name = "Cluster "+m.Workspace+"/"+m.Name, "left-"+m.Namespace
	}
	text := fmt.Sprintf("The agent of %s %s; its access was revoked. Whatever runs on the cluster goes on running there.", record, unanswered)
	leftovers := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name},
		Data:       map[string]string{"uid": string(m.UID), "message": text, "placed": strings.Join(placed, "\n")},
	}
	return text, kube.Ensure(ctx, c, leftovers)
}
