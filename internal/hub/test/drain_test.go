package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// drain creates an eviction as muster drain does for each of some members, all at once, and returns
// what the hub decides on them: the messages of those that it executes, and of the others.
func (f fixture) drain(crp string, members ...*registered) (executed, others []string) {
	f.t.Helper()
	var evictions []*placement.ClusterResourcePlacementEviction
	for _, m := range members {
		e := &placement.ClusterResourcePlacementEviction{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "drain-", Annotations: map[string]string{placement.AnnotationDrain: "true"}},
			Spec:       placement.PlacementEvictionSpec{PlacementName: crp, ClusterName: m.name},
		}
		f.check(f.Create(context.Background(), e))
		f.t.Cleanup(func() { _ = f.Delete(context.Background(), e) })
		evictions = append(evictions, e)
	}
	for _, e := range evictions {
		f.eventually("the eviction is decided about", func() error {
			if err := f.Get(context.Background(), client.ObjectKeyFromObject(e), e); err != nil {
				return err
			}
			if !meta.IsStatusConditionFalse(e.Status.Conditions, "Valid") && meta.FindStatusCondition(e.Status.Conditions, "Executed") == nil {
				return fmt.Errorf("it says %+v", e.Status.Conditions)
			}
			return nil
		})
		last := e.Status.Conditions[len(e.Status.Conditions)-1]
		if meta.IsStatusConditionTrue(e.Status.Conditions, "Executed") {
			executed = append(executed, last.Message)
		} else {
			others = append(others, last.Message)
		}
	}
	return executed, others
}

func TestMembersDrainedAtOnceKeepTheBudgetAndWhatNoOtherMemberTakes(t *testing.T) {
	f := newFixture(t)
	members := byName(f.joined("drain-a"), f.joined("drain-b"), f.joined("drain-c"), f.joined("drain-d"))
	crp := f.pickN(2)
	work := crp.Name + "-work"
	f.untilOn(crp, members[0], members[1])
	members[0].apply(work, "")
	members[1].apply(work, "")
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 2 members")
	budget := &placement.ClusterResourcePlacementDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: crp.Name}, Spec: placement.PlacementDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1))},
	}
	f.check(f.Create(context.Background(), budget))
	t.Cleanup(func() { _ = f.Delete(context.Background(), budget) })

	if executed, others := f.drain(crp.Name, members[0]); len(executed) > 0 || !strings.Contains(others[0], "is not cordoned") {
		t.Fatalf("a member that takes deliveries is drained: %q, %q", executed, others)
	}
	out := func(m *registered) {
		record := m.record()
		f.check(cordon(f, &record, `"true"`))
	}
	out(members[0])
	out(members[1])
	var executed, others []string
	f.eventually("the hub knows that the members are cordoned", func() error {
		if executed, others = f.drain(crp.Name, members[0], members[1]); len(executed) == 0 {
			return fmt.Errorf("the drains say %q", others)
		}
		return nil
	})
	if len(executed) != 1 || !strings.Contains(others[0], "availablePlacements: 1, totalPlacements: 2") {
		t.Fatalf("two members are drained at once: %q, %q", executed, others)
	}
	gone, left := members[0], members[1]
	for _, w := range f.works(crp) {
		if w.DeletionTimestamp != nil && w.Namespace == members[1].namespaceName() {
			gone, left = members[1], members[0]
		}
	}
	gone.remove(work)
	f.untilOn(crp, left, members[2])
	if executed, others := f.drain(crp.Name, left); len(executed) > 0 {
		t.Fatalf("the last available member is drained: %q, %q", executed, others)
	}
	members[2].apply(work, "")
	f.eventually("the other member is drained, too", func() error {
		if executed, others := f.drain(crp.Name, left); len(executed) == 0 {
			return fmt.Errorf("the drain says %q", others)
		}
		return nil
	})
	left.remove(work)
	f.untilOn(crp, members[2], members[3])
	members[3].apply(work, "")
	out(members[2])
	f.eventually("what no other member takes stays", func() error {
		executed, others := f.drain(crp.Name, members[2])
		if len(executed) > 0 {
			t.Fatalf("it is evicted: %q", executed)
		}
		if !strings.Contains(others[0], "no other member qualifies now") {
			return fmt.Errorf("the drain says %q", others)
		}
		return nil
	})
}
