package membercluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
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
		identity: rbacv1.Subject{Kind: "ServiceAccount", Name: "a", Namespace: "fleet-system"}, account: kube.CoreMetadata("ServiceAccount"),
	}
	o.Name, o.Namespace, o.NamespaceState = "m", "fleet-member-m", membernamespace.NamespaceOurs
	o.Liveness = liveness.Observation{State: liveness.Online, LastBeat: beat}
	o.Report = &clusterv1beta1.InternalMemberCluster{
		Status: clusterv1beta1.InternalMemberClusterStatus{AgentStatus: []clusterv1beta1.AgentStatus{agent(yes, yes, beat)}},
	}
	o.before.AgentStatus = []clusterv1beta1.AgentStatus{agent(yes, yes, beat)}
	for _, c := range change {
		c(&o)
	}
	o.RecordedBeat = beatOf(o.before.AgentStatus)
	return o
}

func agent(joined, healthy metav1.ConditionStatus, beat time.Time) clusterv1beta1.AgentStatus {
	return clusterv1beta1.AgentStatus{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(beat),
		Conditions: []metav1.Condition{
			{Type: "Joined", Status: joined, Reason: "R"}, {Type: "Healthy", Status: healthy, Reason: "R", Message: "readyz says no"},
		},
	}
}

func neverSeen(o *observed) {
	o.Report.Status.AgentStatus, o.before.AgentStatus = nil, nil
	o.Liveness.LastBeat, o.Liveness.State = time.Time{}, liveness.Unknown
}

func answered(status metav1.ConditionStatus) func(*observed) {
	return func(o *observed) { o.Report.Status.AgentStatus[0].Conditions[0].Status = status }
}

func revoked(o *observed) {
	o.Revoked, o.Report, o.NamespaceState = true, nil, membernamespace.NamespaceAbsent
}

func deleted(o *observed) { o.Deleted = now.Add(-time.Minute) }

func TestConditions(t *testing.T) {
	readyToJoin := func(o observed) result { return readyToJoinCondition(o) }
	joinedState := func(o observed) result {
		return joinedCondition(o, leaver(o, 15*time.Minute).Depart(now))
	}
	healthy := func(o observed) result { return healthyCondition(o) }
	recordedLost := func(o *observed) { o.RecordedLost = true }
	for _, c := range []struct {
		name     string
		evaluate func(observed) result
		seen     observed
		want     result
		says     string
	}{
		{
			"a prepared member is ready to join", readyToJoin, joined(neverSeen),
			result{status: yes, reason: reasons.MemberClusterReadyToJoin}, "ready to join",
		},
		{
			"a revoked member says how to take that back", readyToJoin, joined(revoked), result{status: no, reason: reasons.Revoked},
			"kubectl annotate membercluster m muster/revoked-",
		},
		{"and has not joined", joinedState, joined(revoked), result{status: no, reason: reasons.Revoked}, "deliveries on the cluster stay"},
		{"and nobody knows its health", healthy, joined(revoked), result{status: unknown, reason: reasons.Revoked}, ""},
		{
			"after that the agent has to be told the namespace", joinedState,
			joined(neverSeen, func(o *observed) { o.Epoch, o.Namespace = 1, "fleet-member-m-x" }),
			result{status: unknown, reason: reasons.MemberClusterJoinStateUnknown}, "config.memberNamespace=fleet-member-m-x",
		},
		{
			"a namespace of somebody else is in the way", readyToJoin,
			joined(func(o *observed) { o.NamespaceState = membernamespace.NamespaceTaken }), result{status: no, reason: reasons.NamespaceTaken},
			"fleet-member-m exists",
		},
		{
			"a namespace that is going is waited for", readyToJoin,
			joined(func(o *observed) { o.NamespaceState = membernamespace.NamespaceTerminating }),
			result{status: no, reason: reasons.NamespaceTerminating}, "creates it again",
		},
		{
			"an identity of an unknown kind is named", readyToJoin, joined(func(o *observed) { o.identity.Kind = "Nonsense" }),
			result{status: no, reason: reasons.IdentityInvalid}, `kind is "Nonsense"`,
		},
		{
			"an account without a namespace is named", readyToJoin, joined(func(o *observed) { o.identity.Namespace = "" }),
			result{status: no, reason: reasons.IdentityInvalid}, "spec.identity.namespace is empty",
		},
		{
			"an account that does not exist comes with its remedy", readyToJoin, joined(func(o *observed) { o.accountMissing = true }),
			result{status: no, reason: reasons.IdentityMissing}, "kubectl create serviceaccount a -n fleet-system",
		},
		{
			"a user needs no namespace", readyToJoin, joined(func(o *observed) { o.identity = rbacv1.Subject{Kind: "User", Name: "u"} }),
			result{status: yes, reason: reasons.MemberClusterReadyToJoin}, "",
		},

		{
			"without an agent nobody knows", joinedState, joined(neverSeen), result{status: unknown, reason: reasons.MemberClusterJoinStateUnknown},
			"config.memberClusterName=m",
		},
		{"the agent's word counts", joinedState, joined(), result{status: yes, reason: reasons.MemberClusterJoined}, "successfully joined"},
		{"also that it has left", joinedState, joined(answered(no)), result{status: no, reason: reasons.MemberClusterLeft}, "has left"},
		{
			"also that it could not", joinedState, joined(answered(unknown)), result{status: unknown, reason: reasons.MemberClusterJoinStateUnknown},
			"",
		},
		{
			"leaving says what it waits for, and until when", joinedState, joined(deleted), result{status: yes, reason: reasons.Leaving},
			"at most until 2026-01-02T03:18:05Z (14m0s)",
		},

		{
			"before the first beat health is unknown", healthy, joined(neverSeen),
			result{status: unknown, reason: reasons.AgentUnseen}, "no heartbeat",
		},
		{"a member that beats is healthy", healthy, joined(), result{status: yes, reason: reasons.MemberClusterHealthy}, ""},
		{
			"unless its agent says otherwise", healthy, joined(func(o *observed) { o.Report.Status.AgentStatus[0].Conditions[1].Status = no }),
			result{status: no, reason: reasons.AgentUnhealthy}, "readyz says no",
		},
		{
			"silence is not health", healthy, joined(func(o *observed) { o.Liveness.State = liveness.Lost }),
			result{status: no, reason: reasons.AgentLost}, "since 2026-01-02T03:03:05Z",
		},
		{
			"after a restart of the hub a lost member stays lost", healthy,
			joined(recordedLost, func(o *observed) { o.Liveness.State, o.Liveness.LastBeat = liveness.Unknown, time.Time{} }),
			result{status: no, reason: reasons.AgentLost}, "since",
		},
		{
			"and a healthy one healthy", healthy, joined(func(o *observed) {
				o.Liveness.State, o.Liveness.LastBeat = liveness.Unknown,
					time.Time{}
			}), result{status: yes, reason: reasons.MemberClusterHealthy}, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.evaluate(c.seen)
			if !strings.Contains(got.message, c.says) {
				t.Errorf("message %q does not say %q", got.message, c.says)
			}
			got.message = ""
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestABeatAloneChangesTheStatusOnlyWhenItIsToBeShownAnew(t *testing.T) {
	o := joined()
	o.Refresh = 5 * time.Minute
	other := clusterv1beta1.AgentStatus{Type: "ServiceExportImportController", LastReceivedHeartbeat: metav1.NewTime(now)}
	o.Report.Status.AgentStatus = append(o.Report.Status.AgentStatus, other)
	o.Liveness.ClockSkew = new(int64(-3600))
	first := describe(o, 1, lifecycle.Departure{}, now)
	if diff := cmp.Diff(o.Liveness.ClockSkew, first.ClockSkewSeconds); diff != "" {
		t.Errorf("clock skew (-want +got):\n%s", diff)
	}
	o.before, o.RecordedBeat = first, beatOf(first.AgentStatus)
	for _, c := range []struct {
		name  string
		after time.Duration
		write bool
	}{{"a minute later", time.Minute, false}, {"six minutes later", 6 * time.Minute, true}} {
		later := o
		later.Liveness.LastBeat = now.Add(c.after)
		later.Report = o.Report.DeepCopy()
		later.Liveness.ClockSkew = new(int64(-3590))
		later.Liveness.Delay = &clusterv1beta1.HeartbeatDelay{Hour: metav1.NewTime(now), Seconds: []int32{7}}
		later.Report.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(now.Add(-time.Hour)) // the member's clock does not matter
		later.Report.Status.AgentStatus[1].LastReceivedHeartbeat = metav1.NewTime(now.Add(c.after))
		later.Report.Status.ResourceUsage.ObservationTime = metav1.NewTime(now.Add(c.after))
		status := describe(later, 1, lifecycle.Departure{}, now.Add(c.after))
		if wrote := cmp.Diff(first, status) != ""; wrote != c.write || wrote != (status.HeartbeatDelay != nil) {
			t.Errorf("%s: wrote %t with the delay %v, want %t", c.name, wrote, status.HeartbeatDelay, c.write)
		}
	}
}
