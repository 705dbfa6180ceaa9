package member

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

// joined is a member whose agent has joined and beat a minute ago.
func joined(change ...func(*observed)) observed {
	beat := now.Add(-time.Minute)
	o := observed{
		name: "m", memberNamespace: "fleet-member-m", namespace: membership.NamespaceOurs,
		identity: rbacv1.Subject{Kind: "ServiceAccount", Name: "a", Namespace: "fleet-system"},
		liveness: liveness.Online, lastBeat: beat,
		report: &clusterv1beta1.InternalMemberCluster{Status: clusterv1beta1.InternalMemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{
			agent(yes, yes, beat),
		}}},
	}
	o.before.AgentStatus = []clusterv1beta1.AgentStatus{agent(yes, yes, beat)}
	for _, c := range change {
		c(&o)
	}
	return o
}

func agent(joined, healthy metav1.ConditionStatus, beat time.Time) clusterv1beta1.AgentStatus {
	return clusterv1beta1.AgentStatus{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(beat),
		Conditions: []metav1.Condition{{Type: "Joined", Status: joined, Reason: "R"}, {Type: "Healthy", Status: healthy, Reason: "R", Message: "readyz says no"}},
	}
}

func neverSeen(o *observed) {
	o.report.Status.AgentStatus, o.before.AgentStatus = nil, nil
	o.lastBeat, o.liveness = time.Time{}, liveness.Unknown
}

func answered(status metav1.ConditionStatus) func(*observed) {
	return func(o *observed) { o.report.Status.AgentStatus[0].Conditions[0].Status = status }
}

func leaving(o *observed) { o.deleted = now.Add(-time.Minute) }

func TestConditions(t *testing.T) {
	readyToJoin := func(o observed) verdict { return judgeReadyToJoin(o) }
	joinedState := func(o observed) verdict { return judgeJoined(o, depart(o, now, 15*time.Minute)) }
	healthy := func(o observed) verdict { return judgeHealthy(o) }
	recordedLost := func(o *observed) {
		o.before.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionHealthy, Status: no, Reason: reasonAgentLost}}
	}
	for _, c := range []struct {
		name  string
		judge func(observed) verdict
		seen  observed
		want  verdict
		says  string
	}{
		{"a prepared member is ready to join", readyToJoin, joined(neverSeen), verdict{status: yes, reason: reasonReadyToJoin}, "ready to join"},
		{"a namespace of somebody else is in the way", readyToJoin, joined(func(o *observed) { o.namespace = membership.NamespaceTaken }), verdict{status: no, reason: reasonNamespaceTaken}, "fleet-member-m exists"},
		{"a namespace that is going is waited for", readyToJoin, joined(func(o *observed) { o.namespace = membership.NamespaceTerminating }), verdict{status: no, reason: reasonNamespaceTerminating}, "made anew"},
		{"an identity of an unknown kind is named", readyToJoin, joined(func(o *observed) { o.identity.Kind = "Nonsense" }), verdict{status: no, reason: reasonIdentityInvalid}, `kind is "Nonsense"`},
		{"an account without a namespace is named", readyToJoin, joined(func(o *observed) { o.identity.Namespace = "" }), verdict{status: no, reason: reasonIdentityInvalid}, "spec.identity.namespace is empty"},
		{"an account that does not exist comes with its remedy", readyToJoin, joined(func(o *observed) { o.accountMissing = true }), verdict{status: no, reason: reasonIdentityMissing}, "kubectl create serviceaccount a -n fleet-system"},
		{"a user needs no namespace", readyToJoin, joined(func(o *observed) { o.identity = rbacv1.Subject{Kind: "User", Name: "u"} }), verdict{status: yes, reason: reasonReadyToJoin}, ""},

		{"without an agent nobody knows", joinedState, joined(neverSeen), verdict{status: unknown, reason: reasonJoinUnknown}, "config.memberClusterName=m"},
		{"the agent's word counts", joinedState, joined(), verdict{status: yes, reason: reasonJoined}, "successfully joined"},
		{"also that it has left", joinedState, joined(answered(no)), verdict{status: no, reason: reasonLeft}, "has left"},
		{"also that it could not", joinedState, joined(answered(unknown)), verdict{status: unknown, reason: reasonJoinUnknown}, ""},
		{"leaving says what it waits for, and until when", joinedState, joined(leaving), verdict{status: yes, reason: reasonLeaving}, "at most until 2026-01-02T03:18:05Z (14m0s)"},

		{"before the first beat health is unknown", healthy, joined(neverSeen), verdict{status: unknown, reason: reasonAgentUnseen}, "no heartbeat"},
		{"a member that beats is healthy", healthy, joined(), verdict{status: yes, reason: reasonHealthy}, ""},
		{"unless its agent says otherwise", healthy, joined(func(o *observed) { o.report.Status.AgentStatus[0].Conditions[1].Status = no }), verdict{status: no, reason: reasonAgentUnhealthy}, "readyz says no"},
		{"silence is not health", healthy, joined(func(o *observed) { o.liveness = liveness.Lost }), verdict{status: no, reason: reasonAgentLost}, "since 2026-01-02T03:03:05Z"},
		{"after a restart of the hub a lost member stays lost", healthy, joined(recordedLost, func(o *observed) { o.liveness, o.lastBeat = liveness.Unknown, time.Time{} }), verdict{status: no, reason: reasonAgentLost}, "since"},
		{"and a healthy one healthy", healthy, joined(func(o *observed) { o.liveness, o.lastBeat = liveness.Unknown, time.Time{} }), verdict{status: yes, reason: reasonHealthy}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.judge(c.seen)
			if !strings.Contains(got.message, c.says) {
				t.Errorf("message %q does not say %q", got.message, c.says)
			}
			got.message = ""
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestABeatAloneChangesTheStatusAtMostEveryFiveMinutes(t *testing.T) {
	o := joined()
	other := clusterv1beta1.AgentStatus{Type: "ServiceExportImportController", LastReceivedHeartbeat: metav1.NewTime(now)}
	o.report.Status.AgentStatus = append(o.report.Status.AgentStatus, other)
	o.clockSkew = new(int64(-3600))
	first := describe(o, 1, membership.Departure{}, now)
	if diff := cmp.Diff(o.clockSkew, first.ClockSkewSeconds); diff != "" {
		t.Errorf("clock skew (-want +got):\n%s", diff)
	}
	o.before = first
	for _, c := range []struct {
		name  string
		after time.Duration
		write bool
	}{{"a minute later", time.Minute, false}, {"six minutes later", 6 * time.Minute, true}} {
		later := o
		later.lastBeat = now.Add(c.after)
		later.report = o.report.DeepCopy()
		later.clockSkew = new(int64(-3590))
		later.report.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(now.Add(-time.Hour)) // the member's clock does not matter
		later.report.Status.AgentStatus[1].LastReceivedHeartbeat = metav1.NewTime(now.Add(c.after))
		later.report.Status.ResourceUsage.ObservationTime = metav1.NewTime(now.Add(c.after))
		if wrote := cmp.Diff(first, describe(later, 1, membership.Departure{}, now.Add(c.after))) != ""; wrote != c.write {
			t.Errorf("%s: wrote %t, want %t", c.name, wrote, c.write)
		}
	}
}
