package placement

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/kube"
)

func TestWhatKeepsAClusterFromBeingPicked(t *testing.T) {
	report := &clusterv1beta1.InternalMemberCluster{}
	ready := func(ok bool, reason string) func(*fleet.Cluster) {
		return func(c *fleet.Cluster) { c.Status.Conditions[0] = kube.Condition(fleet.ConditionReady, ok, reason, "") }
	}
	for name, c := range map[string]struct {
		change func(*fleet.Cluster)
		report *clusterv1beta1.InternalMemberCluster
		state  liveness.State
		want   string
	}{
		"nothing":                      {ready(true, "Ready"), report, liveness.Online, ""},
		"silence":                      {ready(true, "Ready"), report, liveness.Lost, reasons.AgentLost},
		"an agent that places nothing": {ready(true, "Ready"), nil, liveness.Online, reasons.AgentCannotPlace},
		"an identity that is gone":     {ready(false, "IdentityMissing"), report, liveness.Online, "IdentityMissing"},
		"no agent": {func(c *fleet.Cluster) {
			c.Status.Agent.LastSeen = metav1.Time{}
		}, report, liveness.Unknown, reasons.NotJoined},
		"not a Bundle that is not ready": {func(c *fleet.Cluster) {
			ready(false, string(fleet.StateNotReady))(c)
			c.Status.Summary = fleet.BundleSummary{DesiredReady: 2, Ready: 1, NotReady: 1}
		}, report, liveness.Online, ""},
		"an identity that is gone, beside such a Bundle": {func(c *fleet.Cluster) {
			ready(false, "IdentityMissing")(c)
			c.Status.Summary = fleet.BundleSummary{DesiredReady: 2, Ready: 1, NotReady: 1}
		}, report, liveness.Online, "IdentityMissing"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "a"}}
			cluster.Status.Namespace, cluster.Status.Agent.LastSeen = "cluster-clusters-a", metav1.NewTime(time.Unix(1e9, 0))
			cluster.Status.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionReady, true, "Ready", "")}
			c.change(cluster)
			if got := ofCluster(&metav1.ObjectMeta{}, cluster, c.report, liveness.Observation{State: c.state}).Obstacle.Reason; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestALostMemberIsLostWhileItLeavesAndAfterARestartOfTheHub(t *testing.T) {
	for name, c := range map[string]struct {
		state    liveness.State
		recorded membership.AgentState
		want     bool
	}{
		"it sends heartbeats":               {liveness.Online, membership.AgentOnline, false},
		"it is silent":                      {liveness.Lost, membership.AgentOnline, true},
		"it was silent before the restart":  {liveness.Unknown, membership.AgentLost, true},
		"it was online before the restart":  {liveness.Unknown, membership.AgentOnline, false},
		"it returned, and its status waits": {liveness.Online, membership.AgentLost, false},
	} {
		cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Unix(1e9, 0)}}}
		cluster.Status.AgentState = string(c.recorded)
		cluster.Status.Conditions = []fleet.Condition{kube.Condition(fleet.ConditionReady, false, reasons.Leaving, "")}
		healthy := metav1.Condition{Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionTrue}
		if c.recorded == membership.AgentLost {
			healthy.Status, healthy.Reason = metav1.ConditionFalse, reasons.AgentLost
		}
		mc := &clusterv1beta1.MemberCluster{ObjectMeta: cluster.ObjectMeta, Status: clusterv1beta1.MemberClusterStatus{
			Conditions: []metav1.Condition{
				{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue, Reason: reasons.Leaving}, healthy,
			},
		}}
		seen := liveness.Observation{State: c.state}
		if got := ofCluster(&metav1.ObjectMeta{}, cluster, nil, seen); got.Lost != c.want || !got.Leaving {
			t.Errorf("%s: a Cluster is %+v", name, got)
		}
		if got := ofMemberCluster(mc, seen); got.Lost != c.want || !got.Leaving {
			t.Errorf("%s: a MemberCluster is %+v", name, got)
		}
	}
}
