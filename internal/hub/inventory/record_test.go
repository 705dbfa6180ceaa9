package inventory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

const lostMessage = "no heartbeat since noon"

func TestMemberClusterIsShownAsItsConditionsSay(t *testing.T) {
	joined := condition(metav1.ConditionTrue, "MemberClusterJoined", "joined")
	unseen := condition(metav1.ConditionUnknown, "AgentUnseen", "unseen")
	for _, c := range []struct {
		name            string
		joined, healthy metav1.Condition
		wantHealthy     metav1.Condition
	}{
		{"a member that is well", joined, condition(metav1.ConditionTrue, "MemberClusterHealthy", ""), condition(metav1.ConditionTrue, "AgentHealthy", healthyMessage)},
		{"one whose API server is not", joined, condition(metav1.ConditionFalse, "AgentUnhealthy", "etcd is gone"), condition(metav1.ConditionFalse, "AgentUnhealthy", "etcd is gone")},
		{"one that is silent may be well or not", joined, condition(metav1.ConditionFalse, "AgentLost", lostMessage), condition(metav1.ConditionUnknown, "AgentLost", lostMessage)},
		{"one that has never been seen", condition(metav1.ConditionUnknown, "MemberClusterJoinStateUnknown", "install it"), unseen, unseen},
		{"one that leaves", condition(metav1.ConditionTrue, "Leaving", "leaving"), unseen, unseen},
		{"one that has left", condition(metav1.ConditionFalse, "MemberClusterLeft", "left"), unseen, unseen},
	} {
		mc := &clusterv1beta1.MemberCluster{}
		typed := func(kind string, condition metav1.Condition) metav1.Condition {
			condition.Type = kind
			return condition
		}
		mc.Status.Conditions = []metav1.Condition{typed("Joined", c.joined), typed("Healthy", c.healthy)}
		want := &record{object: mc, settled: true, joined: c.joined, healthy: c.wantHealthy}
		if diff := cmp.Diff(want, ofMemberCluster(mc), cmp.AllowUnexported(record{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if ofMemberCluster(&clusterv1beta1.MemberCluster{}).settled {
		t.Error("a MemberCluster that nobody has judged yet is settled")
	}
}

func TestClusterIsShownAsItsAgentIsAndNotAsItsBundlesAre(t *testing.T) {
	joined := condition(metav1.ConditionTrue, "ClusterJoined", joinedMessage)
	well := condition(metav1.ConditionTrue, "AgentHealthy", healthyMessage)
	ill := &clusterv1beta1.InternalMemberCluster{}
	ill.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{
		{Type: "Healthy", Status: metav1.ConditionFalse, Message: "etcd is gone"},
	}}}
	for _, c := range []struct {
		name            string
		seen            bool
		ready           fleet.Condition
		namespace       corev1.ConditionStatus
		report          *clusterv1beta1.InternalMemberCluster
		joined, healthy metav1.Condition
	}{
		{"a Cluster that is well", true, fleet.Condition{Status: "True", Reason: "Ready"}, "True", nil, joined, well},
		{"one with a bundle that is not ready", true, fleet.Condition{Status: "False", Reason: "Modified", Message: "Modified(1)"}, "True", nil, joined, well},
		{"one whose API server is not well", true, fleet.Condition{Status: "True", Reason: "Ready"}, "True", ill, joined, condition(metav1.ConditionFalse, "AgentUnhealthy", "etcd is gone")},
		{"one that is silent may be well or not", true, fleet.Condition{Status: "False", Reason: "AgentLost", Message: lostMessage}, "True", ill,
			joined, condition(metav1.ConditionUnknown, "AgentLost", lostMessage)},
		{"one that waits for its agent", false, fleet.Condition{Status: "False", Reason: "WaitCheckIn", Message: "waiting"}, "True", nil,
			condition(metav1.ConditionUnknown, "WaitCheckIn", "waiting"), condition(metav1.ConditionUnknown, "WaitCheckIn", "waiting")},
		{"one whose identity is gone", true, fleet.Condition{Status: "False", Reason: "IdentityMissing", Message: "gone"}, "True", nil,
			condition(metav1.ConditionFalse, "IdentityMissing", "gone"), condition(metav1.ConditionUnknown, "IdentityMissing", "gone")},
		{"one whose namespace is going", true, fleet.Condition{Status: "False", Reason: "NamespaceTerminating", Message: "going"}, "False", nil,
			condition(metav1.ConditionFalse, "NamespaceTerminating", "going"), condition(metav1.ConditionUnknown, "NamespaceTerminating", "going")},
	} {
		cluster := &fleet.Cluster{}
		c.ready.Type = fleet.ConditionReady
		cluster.Status.Conditions = []fleet.Condition{c.ready, {Type: clusterProcessed, Status: c.namespace}}
		cluster.Status.Agent.KubernetesVersion = "v1.36.3"
		if c.seen {
			cluster.Status.Agent.LastSeen = metav1.NewTime(time.Unix(1, 0))
		}
		want := &record{object: cluster, settled: true, joined: c.joined, healthy: c.healthy, version: "v1.36.3"}
		if diff := cmp.Diff(want, ofCluster(cluster, c.report), cmp.AllowUnexported(record{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if ofCluster(&fleet.Cluster{}, nil).settled {
		t.Error("a Cluster that nobody has judged yet is settled")
	}
}
