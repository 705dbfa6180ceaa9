package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

var deletedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// leaver is a member with an agent that was seen, whose record was deleted.
func leaver(change ...func(*Leaver)) Leaver {
	l := Leaver{
		Observed: Observed{Deleted: deletedAt, RecordedBeat: deletedAt, NamespaceState: membernamespace.NamespaceOurs}, Timeout: 15 * time.Minute,
	}
	says(metav1.ConditionTrue, "Joined", "")(&l)
	for _, c := range change {
		c(&l)
	}
	return l
}

// says is what its agent says about having joined.
func says(joined metav1.ConditionStatus, reason, message string) func(*Leaver) {
	return func(l *Leaver) {
		l.Report = &clusterv1beta1.InternalMemberCluster{}
		l.Report.Status.AgentStatus = []clusterv1beta1.AgentStatus{{
			Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{{Type: "Joined", Status: joined, Reason: reason, Message: message}},
		}}
	}
}

func TestDepart(t *testing.T) {
	in := func(state membernamespace.NamespaceState) func(*Leaver) {
		return func(l *Leaver) { l.NamespaceState = state }
	}
	soon, late := deletedAt.Add(time.Minute), deletedAt.Add(15*time.Minute)
	waits := func(progress string) Departure {
		return Departure{Step: WaitForAgent, Deadline: late, progress: progress}
	}
	for _, c := range []struct {
		name string
		seen Leaver
		now  time.Time
		want Departure
	}{
		{"a joined agent is asked first", leaver(), soon, waits("waiting for the member agent to answer")},
		{"what it says is passed on", leaver(says("True", "Leaving", "2 objects left")), soon, waits("2 objects left")},
		{
			"beside what troubles it", leaver(says("True", "Leaving", "2 objects left"), func(l *Leaver) { l.Problem = "agent lost" }), soon,
			waits("agent lost; 2 objects left"),
		},
		{"its answer ends the wait", leaver(says("False", "Left", "")), soon, Departure{Step: RemoveNamespace}},
		{
			"a member that never connected is not waited for", leaver(func(l *Leaver) { l.RecordedBeat = time.Time{} }), soon,
			Departure{Step: RemoveNamespace},
		},
		{"nor one that keeps what it has", leaver(func(l *Leaver) { l.Unasked = true }), soon, Departure{Step: RemoveNamespace}},
		{
			"nor one that cannot answer, which is reported", leaver(func(l *Leaver) { l.CannotAnswer = "is mute" }), soon, Departure{
				Step: RemoveNamespace, Unanswered: "is mute",
			},
		},
		{
			"unless it has answered before, and lost its access since",
			leaver(says("False", "Left", ""), func(l *Leaver) { l.CannotAnswer = "is mute" }), soon, Departure{Step: RemoveNamespace},
		},
		{
			"nor one without a report", leaver(func(l *Leaver) { l.Report = nil }), soon, Departure{
				Step: RemoveNamespace, Unanswered: "can no longer answer, because its report is gone",
			},
		},
		{"when the wait is over it is forced", leaver(), late, Departure{Step: RemoveNamespace, Unanswered: "did not answer"}},
		{
			"what has to be removed before the agent is asked is waited for", leaver(func(l *Leaver) { l.Emptying = "2 Works left" }),
			soon, waits("2 Works left"),
		},
		{"not longer than for an answer", leaver(func(l *Leaver) { l.Emptying = "2 Works left" }), late,
			Departure{Step: RemoveNamespace, Unanswered: "did not remove its deliveries in time"}},
		{
			"nor if the agent has left", leaver(says("False", "Left", ""), func(l *Leaver) { l.Emptying = "2 Works left" }), soon,
			Departure{Step: RemoveNamespace},
		},
		{"a namespace that is going is not waited for", leaver(in(membernamespace.NamespaceTerminating)), soon, Departure{Step: RemoveFinalizer}},
		{"with the namespace gone the record goes", leaver(in(membernamespace.NamespaceAbsent)), soon, Departure{Step: RemoveFinalizer}},
		{"a namespace of somebody else is not touched", leaver(in(membernamespace.NamespaceTaken)), soon, Departure{Step: RemoveFinalizer}},
	} {
		if diff := cmp.Diff(c.want, c.seen.Depart(c.now), cmp.AllowUnexported(Departure{}),
			cmpopts.IgnoreFields(Departure{}, "Message")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	const want = "leaving: 2 objects left, at most until 2026-01-02T03:19:05Z (14m0s)"
	if got := leaver(says("True", "Leaving", "2 objects left")).Depart(soon).Message; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestLeavingIsWrittenAgainOnlyForWhatTheAgentSays(t *testing.T) {
	said := Departure{progress: "2 objects left", Message: "new"}
	for message, same := range map[string]bool{
		"leaving: 2 objects left, at most until 2026-01-01T00:00:00Z (5m0s)":  true,
		"leaving: 12 objects left, at most until 2026-01-01T00:00:00Z (5m0s)": false,
		"leaving: waiting for the member agent to answer, at most until 2026": false,
	} {
		if (said.MessageAfter(message) == message) != same {
			t.Errorf("%q: want %t", message, same)
		}
	}
}

func TestLeavePolicy(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		want        clusterv1beta1.LeavePolicy
		problem     bool
	}{
		"what is placed on a Cluster stays":          {nil, clusterv1beta1.LeaveOrphan, false},
		"unless the record says otherwise":           {map[string]string{"muster/leave-policy": "Delete"}, clusterv1beta1.LeaveDelete, false},
		"which may say so":                           {map[string]string{"muster/leave-policy": "Orphan"}, clusterv1beta1.LeaveOrphan, false},
		"what is not understood removes nothing":     {map[string]string{"muster/leave-policy": "delete"}, clusterv1beta1.LeaveOrphan, true},
		"nor does an annotation that has no content": {map[string]string{"muster/leave-policy": ""}, clusterv1beta1.LeaveOrphan, true},
	} {
		record := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
		if got, problem := leavePolicy(record, clusterv1beta1.LeaveOrphan); got != c.want || (problem != "") != c.problem {
			t.Errorf("%s: got %s, %q", name, got, problem)
		}
	}
	if got, problem := leavePolicy(&clusterv1beta1.MemberCluster{}, clusterv1beta1.LeaveDelete); got != clusterv1beta1.LeaveDelete ||
		problem != "" {
		t.Errorf("of a MemberCluster: got %s, %q", got, problem)
	}
}
