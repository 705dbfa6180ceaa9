package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// unhealthy plays an agent that says so of its cluster.
func (r *registered) unhealthy() {
	r.t.Helper()
	r.eventually("the agent says that its cluster is not healthy", func() error {
		var report clusterv1beta1.InternalMemberCluster
		if err := r.agent.Get(context.Background(), types.NamespacedName{Namespace: r.namespaceName(), Name: r.name}, &report); err != nil {
			return err
		}
		own := clusterv1beta1.FindAgent(report.Status.AgentStatus, clusterv1beta1.MemberAgent)
		for i := range own.Conditions {
			if c := &own.Conditions[i]; c.Type == "Healthy" {
				c.Status, c.Reason, c.Message = metav1.ConditionFalse, "InternalMemberClusterUnhealthy", "its API server does not answer"
			}
		}
		return r.agent.Status().Update(context.Background(), &report)
	})
	r.until("Healthy", metav1.ConditionFalse, "AgentUnhealthy")
}

// untilNotPicked waits until a placement says for which reason each of these members is not picked.
func (f fixture) untilNotPicked(crp *placement.ClusterResourcePlacement, want map[string]*registered) {
	f.t.Helper()
	f.eventually("the placement says why members are not picked", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		reasons := map[string]string{}
		for _, o := range crp.Status.Obstacles {
			reasons[o.ClusterName] = o.Reason
		}
		for reason, m := range want {
			if reasons[m.name] != reason {
				return fmt.Errorf("%s is not picked for %q instead of %s; all: %v", m.name, reasons[m.name], reason, reasons)
			}
		}
		return nil
	})
}

// TestAPlacementThatMissesMembersSaysWhyEachOfTheOthersIsNotPicked asks for more members than there
// are. A status names twenty that are not picked: members of other tests, which are leaving for a
// quarter of an hour, would be among them.
func TestAPlacementThatMissesMembersSaysWhyEachOfTheOthersIsNotPicked(t *testing.T) {
	t.Parallel()
	f := newProcess(t, turnApart(t, "unpicked"), "", "--leader-elect=false")
	well, lost := f.joined("well"), f.joined("lost")
	want := map[string]*registered{"AgentLost": lost}
	change := func(m *registered, edit func(*clusterv1beta1.MemberCluster)) *registered {
		record := m.record()
		f.change(&record, func() { edit(&record) })
		return m
	}
	change(lost, func(mc *clusterv1beta1.MemberCluster) { mc.Spec.HeartbeatPeriodSeconds = 1 })
	want["TaintNotTolerated"] = change(f.joined("tainted"), func(mc *clusterv1beta1.MemberCluster) {
		mc.Spec.Taints = []clusterv1beta1.Taint{{Key: "dedicated", Value: "gpu", Effect: string(corev1.TaintEffectNoSchedule)}}
	})
	want["AffinityNotMatched"] = f.joined("other")
	want["AffinityNotMatched"].label("test=")
	want["NotJoined"] = f.register("new")
	want["NotJoined"].until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	want["NotJoined"].label("test=" + f.workspace)
	want["AgentUnhealthy"] = f.joined("sick")
	want["AgentUnhealthy"].unhealthy()
	want["Revoked"], want["Leaving"] = f.joined("revoked"), f.joined("leaving")
	revoked, leaving := want["Revoked"].record(), want["Leaving"].record()
	f.check(revoke(f, &revoked, `"true"`))
	f.check(f.Delete(context.Background(), &leaving))
	lost.until("Healthy", metav1.ConditionFalse, "AgentLost")

	crp := f.pickN(20)
	f.untilSays(crp, "Scheduled", metav1.ConditionFalse, "")
	f.untilNotPicked(crp, want)
	f.untilOn(crp, well)
	missing := 0
	for _, s := range crp.Status.PlacementStatuses {
		if c := s.Conditions[0]; c.Type == "Scheduled" && c.Status == metav1.ConditionFalse && c.Reason == "ScheduleFailed" {
			missing++
		}
	}
	if missing != 19 {
		t.Errorf("19 members are missing, and it lists %d", missing)
	}

	f.dispose(crp)
	for _, m := range []*registered{
		well, lost, want["TaintNotTolerated"], want["AffinityNotMatched"], want["AgentUnhealthy"], want["Leaving"],
	} {
		record := m.record()
		f.check(f.Delete(context.Background(), &record))
		m.eventually("the agent leaves", func() error { return m.answer(metav1.ConditionFalse, "v1") })
		m.untilGone()
	}
}

// TestAPlacementThatCannotBeSpreadSaysWhoWouldUnbalanceIt has one zone with more
// members than the other.
func TestAPlacementThatCannotBeSpreadSaysWhoWouldUnbalanceIt(t *testing.T) {
	f := newAlone(t, "")
	members := byName(f.joined("spread-a", "zone=east"), f.joined("spread-b", "zone=west"), f.joined("spread-c", "zone=east"),
		f.joined("spread-d", "zone=east"))
	crp := f.crp(strings.ReplaceAll(`
resourceSelectors: [{group: "", version: v1, kind: Namespace, name: $SHOP}]
policy:
  placementType: PickN
  numberOfClusters: 4
  affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: `+
		`{test: $TEST}}}]}}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
`, "$SHOP", f.shop()))
	f.untilSays(crp, "Scheduled", metav1.ConditionFalse, "")
	f.untilNotPicked(crp, map[string]*registered{"TopologySpreadNotSatisfied": members[3]})
	f.untilOn(crp, members[:3]...)
}
