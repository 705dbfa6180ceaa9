package membership

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

const silentMessage = "no heartbeat since noon"

func condition(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: message}
}

func TestMemberClusterStatus(t *testing.T) {
	joined := condition("True", "MemberClusterJoined", "joined")
	unseen := condition("Unknown", "AgentUnseen", "unseen")
	for _, c := range []struct {
		name            string
		joined, healthy metav1.Condition
		wantAgent       AgentState
		wantHealthy     metav1.Condition
	}{
		{
			"a member that is well", joined, condition("True", "MemberClusterHealthy", ""), AgentOnline,
			condition("True", "AgentHealthy", healthyMessage),
		},
		{
			"a member whose API server is not well", joined, condition("False", "AgentUnhealthy", "etcd is gone"), AgentUnhealthy,
			condition("False", "AgentUnhealthy", "etcd is gone"),
		},
		{
			"a silent member may be well or not", joined, condition("False", "AgentLost", silentMessage), AgentLost,
			condition("Unknown", "AgentLost", silentMessage),
		},
		{"a member that was never seen", condition("Unknown", "MemberClusterJoinStateUnknown", "install it"), unseen, AgentAwaited, unseen},
		{"a member that leaves before its agent was seen", condition("True", "Leaving", "leaving"), unseen, AgentAwaited, unseen},
		{"a member that has left", condition("False", "MemberClusterLeft", "left"), unseen, AgentLeft, unseen},
	} {
		typed := func(kind string, condition metav1.Condition) metav1.Condition {
			condition.Type = kind
			return condition
		}
		record := &clusterv1beta1.MemberClusterStatus{Conditions: []metav1.Condition{typed("Joined", c.joined), typed("Healthy", c.healthy)}}
		want := Status{
			Agent: c.wantAgent, Ready: c.healthy.Status == "True", Reason: c.healthy.Reason, Message: c.healthy.Message,
			Joined: c.joined, Healthy: c.wantHealthy,
		}
		if diff := cmp.Diff(want, MemberClusterStatus(record)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestMemberClusterThatKubeFleetsHubJoinedIsKnownToHaveJoinedAndNothingElse(t *testing.T) {
	record := &clusterv1beta1.MemberClusterStatus{
		Conditions: []metav1.Condition{{Type: "Joined", Status: "True", Reason: "MemberClusterJoined"}},
	}
	want := Status{Joined: condition("True", "MemberClusterJoined", "")}
	if diff := cmp.Diff(want, MemberClusterStatus(record)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClusterStatus(t *testing.T) {
	joined := condition("True", "ClusterJoined", joinedMessage)
	well := condition("True", "AgentHealthy", healthyMessage)
	ill := &clusterv1beta1.InternalMemberCluster{}
	ill.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{
		{Type: "Healthy", Status: metav1.ConditionFalse, Message: "etcd is gone"},
	}}}
	for _, c := range []struct {
		name            string
		seen            bool
		ready           fleet.Condition
		report          *clusterv1beta1.InternalMemberCluster
		agent           AgentState
		joined, healthy metav1.Condition
	}{
		{"a Cluster that is well", true, fleet.Condition{Status: "True", Reason: "Ready"}, nil, AgentOnline, joined, well},
		{
			"a Cluster with a Bundle that is not ready", true, fleet.Condition{Status: "False", Reason: "Modified", Message: "Modified(1)"}, nil,
			AgentOnline, joined, well,
		},
		{
			"a Cluster whose API server is not well", true, fleet.Condition{Status: "True", Reason: "Ready"}, ill, AgentUnhealthy, joined,
			condition("False", "AgentUnhealthy", "etcd is gone"),
		},
		{"a silent Cluster may be well or not", true, fleet.Condition{Status: "False", Reason: "AgentLost", Message: silentMessage}, ill,
			AgentLost, joined, condition("Unknown", "AgentLost", silentMessage)},
		{
			"a Cluster whose agent has left", true, fleet.Condition{Status: "False", Reason: "AgentLeft", Message: "it is at x"}, nil,
			AgentLeft, joined, well,
		},
		{"a Cluster that waits for its agent", false, fleet.Condition{Status: "False", Reason: "WaitCheckIn", Message: "waiting"}, nil,
			AgentAwaited, condition("Unknown", "WaitCheckIn", "waiting"), condition("Unknown", "WaitCheckIn", "waiting")},
		{"a Cluster on which no agent can be installed", false, fleet.Condition{Status: "False", Reason: "Unreachable", Message: "no answer"},
			nil,
			AgentAbsent, condition("Unknown", "Unreachable", "no answer"), condition("Unknown", "Unreachable", "no answer")},
		{"a new Cluster whose namespace is somebody else's", false, fleet.Condition{Status: "False", Reason: "NamespaceTaken", Message: "taken"},
			nil,
			AgentAbsent, condition("Unknown", "NamespaceTaken", "taken"), condition("Unknown", "NamespaceTaken", "taken")},
		{"a Cluster whose identity is gone", true, fleet.Condition{Status: "False", Reason: "IdentityMissing", Message: "gone"}, nil,
			AgentRevoked, condition("False", "IdentityMissing", "gone"), condition("Unknown", "IdentityMissing", "gone")},
		{"a Cluster whose namespace is going", true, fleet.Condition{Status: "False", Reason: "NamespaceTerminating", Message: "going"}, nil,
			AgentWithoutNamespace, condition("False", "NamespaceTerminating", "going"), condition("Unknown", "NamespaceTerminating", "going")},
	} {
		c.ready.Type = fleet.ConditionReady
		record := &fleet.ClusterStatus{Conditions: []fleet.Condition{c.ready}}
		if c.seen {
			record.Agent.LastSeen = metav1.NewTime(time.Unix(1, 0))
		}
		want := Status{
			Agent: c.agent, Ready: c.ready.Status == "True", Reason: c.ready.Reason, Message: c.ready.Message, Joined: c.joined, Healthy: c.healthy,
		}
		if diff := cmp.Diff(want, ClusterStatus(record, c.report)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestClusterThatNobodyHasObservedYetSaysNothing(t *testing.T) {
	record := &fleet.ClusterStatus{Conditions: []fleet.Condition{kube.Condition(fleet.ConditionImported, true, "Imported", "")}}
	if diff := cmp.Diff(Status{}, ClusterStatus(record, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
