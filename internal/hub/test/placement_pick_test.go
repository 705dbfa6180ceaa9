package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

const pickN = `
resourceSelectors: [{group: "", version: v1, kind: Namespace, name: $SHOP}]
policy:
  placementType: PickN
  numberOfClusters: $N
  affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: ` +
	`{test: $TEST}}}]}}}
`

func (f fixture) pickN(number int) *placement.ClusterResourcePlacement {
	f.t.Helper()
	return f.crp(strings.NewReplacer("$SHOP", f.shop(), "$N", fmt.Sprint(number)).Replace(pickN))
}

// byName are members in the order in which PickN takes them if they are equal: the
// highest name first.
func byName(members ...*registered) []*registered {
	slices.SortFunc(members, func(a, b *registered) int { return strings.Compare(b.name, a.name) })
	return members
}

func TestPickNGoesUpAndDownByNameAndToZero(t *testing.T) {
	f := newFixture(t)
	members := byName(f.joined("count-b"), f.joined("count-c"), f.joined("count-a"))
	crp := f.pickN(1)
	f.untilOn(crp, members[0])
	scale := func(number int32) {
		f.change(crp, func() { crp.Spec.Policy.NumberOfClusters = &number })
	}
	scale(3)
	f.untilOn(crp, members...)
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "3 members picked")
	scale(2)
	f.untilOn(crp, members[:2]...)
	scale(0)
	f.untilOn(crp)
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "spec.policy requires no member")
	for _, s := range crp.Status.Conditions {
		if s.Type != "ClusterResourcePlacementScheduled" {
			t.Errorf("there is nobody for whom %s could be %s", s.Type, s.Status)
		}
	}
	scale(1)
	f.untilOn(crp, members[0])
}

func TestAMemberThatLeavesKeepsItsPlaceUntilItHasLeft(t *testing.T) {
	f := newAlone(t, "")
	members := byName(f.joined("leave-a"), f.joined("leave-b"))
	first, second := members[0], members[1]
	crp := f.pickN(1)
	f.untilOn(crp, first)
	first.apply(crp.Name+"-work", "")
	f.restartHub()
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 1 members")

	record := first.record()
	f.check(f.Delete(context.Background(), &record))
	f.eventually("the status says that it leaves", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		for _, s := range crp.Status.PlacementStatuses {
			if s.ClusterName == first.name && s.Conditions[0].Status == metav1.ConditionTrue &&
				strings.Contains(s.Conditions[0].Message, "the member is leaving the fleet") {
				return nil
			}
		}
		return fmt.Errorf("it is %+v", crp.Status.PlacementStatuses)
	})
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 1 members")
	f.untilOn(crp, first)
	f.eventually("the agent answers", func() error { return first.answer(metav1.ConditionFalse, "v1") })
	first.untilGone()
	f.untilOn(crp, second)
}

// TestNodesThatComeMakeAMemberEligible plays a KubeFleet member agent whose cluster grows.
func TestNodesThatComeMakeAMemberEligible(t *testing.T) {
	f := newFixture(t)
	members := byName(f.joined("nodes-a"), f.joined("nodes-b"))
	small, large := members[0], members[1]
	nodes := func(m *registered, count string) {
		t.Helper()
		m.eventually("the agent reports its nodes", func() error {
			var report clusterv1beta1.InternalMemberCluster
			if err := m.agent.Get(context.Background(), types.NamespacedName{Namespace: m.namespaceName(), Name: m.name}, &report); err != nil {
				return err
			}
			report.Status.Properties[clusterv1beta1.PropertyNodeCount] = clusterv1beta1.PropertyValue{Value: count, ObservationTime: metav1.Now()}
			return m.agent.Status().Update(context.Background(), &report)
		})
	}
	nodes(large, "5")
	crp := f.crp(strings.ReplaceAll(`
resourceSelectors: [{group: "", version: v1, kind: Namespace, name: $SHOP}]
policy:
  affinity:
    clusterAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        clusterSelectorTerms:
        - labelSelector: {matchLabels: {test: $TEST}}
          propertySelector: {matchExpressions: [{name: kubernetes-fleet.io/node-count, operator: Ge, values: ["5"]}]}
`, "$SHOP", f.shop()))
	f.untilOn(crp, large)
	nodes(small, "6")
	f.untilOn(crp, members...)
	nodes(small, "1") // what is placed stays
	f.eventually("the status says why it stays", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		for _, s := range crp.Status.PlacementStatuses {
			if s.ClusterName == small.name && s.Conditions[0].Status == metav1.ConditionTrue &&
				strings.Contains(s.Conditions[0].Message, "node-count is 1, not Ge 5") {
				return nil
			}
		}
		return fmt.Errorf("it is %+v", crp.Status.PlacementStatuses)
	})
	f.untilOn(crp, members...)
}
