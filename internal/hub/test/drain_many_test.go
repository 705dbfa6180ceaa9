package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// drained is a placement of a drain of many members at once.
type drained struct {
	*placement.ClusterResourcePlacement
	budget placement.PlacementDisruptionBudgetSpec
	// members is the number of its members, may the number of those that may go at once.
	members, may int
}

// spread places something on members of the fixture, and gives it a budget.
func (f fixture) spread(shop string, d *drained, suffix string) {
	f.t.Helper()
	name := metav1.ObjectMeta{Name: "crp-" + f.workspace + suffix}
	d.ClusterResourcePlacement = &placement.ClusterResourcePlacement{ObjectMeta: name}
	text := strings.NewReplacer("$SHOP", shop, "$N", fmt.Sprint(d.members), "$TEST", f.workspace).Replace(pickN)
	f.check(yaml.UnmarshalStrict([]byte(text), &d.Spec))
	d.Spec.Strategy.RollingUpdate = &placement.RollingUpdateConfig{MaxUnavailable: new(intstr.FromString("100%"))}
	f.check(f.Create(context.Background(), d.ClusterResourcePlacement))
	f.t.Cleanup(func() { f.dispose(d.ClusterResourcePlacement) })
	f.check(f.Create(context.Background(), &placement.ClusterResourcePlacementDisruptionBudget{ObjectMeta: name, Spec: d.budget}))
}

// everyWork returns the Works of a placement by the namespaces of the members, when there are as
// many as there are to be.
func (f fixture) everyWork(d *drained) map[string]placement.Work {
	f.t.Helper()
	found := map[string]placement.Work{}
	f.eventually("each member has "+d.Name, func() error {
		clear(found)
		for _, w := range f.works(d.ClusterResourcePlacement) {
			found[w.Namespace] = w
		}
		if len(found) != d.members {
			return fmt.Errorf("%d of %d have it", len(found), d.members)
		}
		return nil
	})
	return found
}

// TestAHundredMembersDrainedAtOnceKeepEachBudget cordons a hundred members, and asks for all
// evictions of three placements at once. It takes minutes: 120 members join.
func TestAHundredMembersDrainedAtOnceKeepEachBudget(t *testing.T) {
	f := newAlone(t, "")
	ctx, members := context.Background(), make([]*registered, 120)
	for i := range members {
		members[i] = f.register(fmt.Sprintf("many-%03d", i), every(600))
	}
	each := func(do func(*registered)) {
		for _, m := range members {
			do(m)
		}
	}
	each(func(m *registered) { m.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin") })
	each(func(m *registered) {
		m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "v1") })
		m.label("test=" + f.workspace)
	})
	each(func(m *registered) { m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy") })
	byNamespace := map[string]*registered{}
	each(func(m *registered) { byNamespace[m.namespaceName()] = m })

	count := func(n int) *intstr.IntOrString { return new(intstr.FromInt(n)) }
	all := []*drained{
		{members: 100, may: 3, budget: placement.PlacementDisruptionBudgetSpec{MinAvailable: count(97)}},
		{members: 50, may: 5, budget: placement.PlacementDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromString("10%"))}},
		{members: 20, may: 1, budget: placement.PlacementDisruptionBudgetSpec{MaxUnavailable: count(1)}},
	}
	shop := f.shop()
	for i, d := range all {
		f.spread(shop, d, fmt.Sprintf("-%d", i))
	}
	for _, d := range all {
		for namespace, w := range f.everyWork(d) {
			byNamespace[namespace].apply(w.Name, "")
		}
		f.untilSays(d.ClusterResourcePlacement, "Available", metav1.ConditionTrue, fmt.Sprintf("on all %d members", d.members))
	}
	holders := f.everyWork(all[0])
	for _, m := range members {
		if _, holds := holders[m.namespaceName()]; holds {
			record := m.record()
			f.check(cordon(f, &record, `"true"`))
		}
	}

	var evictions []*placement.ClusterResourcePlacementEviction
	of := map[string]*drained{}
	for _, d := range all {
		of[d.Name] = d
		for namespace := range f.everyWork(d) {
			if _, cordoned := holders[namespace]; cordoned {
				evictions = append(evictions, &placement.ClusterResourcePlacementEviction{
					ObjectMeta: metav1.ObjectMeta{GenerateName: "drain-", Annotations: map[string]string{placement.AnnotationDrain: "true"}},
					Spec:       placement.PlacementEvictionSpec{PlacementName: d.Name, ClusterName: byNamespace[namespace].name},
				})
			}
		}
	}
	var creating sync.WaitGroup
	failed := make(chan error, len(evictions))
	for batch := range slices.Chunk(evictions, 10) {
		creating.Go(func() {
			for _, e := range batch {
				failed <- f.Create(ctx, e)
			}
		})
	}
	creating.Wait()
	for range evictions {
		f.check(<-failed)
	}
	executed := map[string]int{}
	for _, e := range evictions {
		f.eventually("the eviction is decided about", func() error {
			if err := f.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
				return err
			}
			if meta.FindStatusCondition(e.Status.Conditions, "Executed") == nil && !meta.IsStatusConditionFalse(e.Status.Conditions, "Valid") {
				return fmt.Errorf("it says %+v", e.Status.Conditions)
			}
			return nil
		})
		if meta.IsStatusConditionTrue(e.Status.Conditions, "Executed") {
			executed[e.Spec.PlacementName]++
		}
	}
	for name, d := range of {
		leaving := 0
		for _, w := range f.works(d.ClusterResourcePlacement) {
			if w.DeletionTimestamp != nil {
				leaving++
			}
		}
		if executed[name] != d.may || leaving != d.may {
			t.Errorf("of %s, %d evictions are executed and %d Works are going, and the budget lets %d go", name, executed[name], leaving, d.may)
		}
	}
	t.Logf("of %d evictions, these were executed: %v", len(evictions), executed)
}
