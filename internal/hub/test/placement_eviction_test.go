package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// evict creates an eviction and waits for what is decided about it for good.
func (f fixture) evict(crp string, m *registered) (valid, executed *metav1.Condition) {
	f.t.Helper()
	e := &placement.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e-"}, Spec: placement.PlacementEvictionSpec{PlacementName: crp, ClusterName: m.name},
	}
	f.check(f.Create(context.Background(), e))
	f.t.Cleanup(func() { _ = f.Delete(context.Background(), e) })
	f.eventually("the eviction is decided about", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(e), e); err != nil {
			return err
		}
		valid, executed = meta.FindStatusCondition(e.Status.Conditions, "Valid"), meta.FindStatusCondition(e.Status.Conditions, "Executed")
		if valid == nil || valid.Status == metav1.ConditionTrue && executed == nil {
			return fmt.Errorf("it says %+v", e.Status.Conditions)
		}
		return nil
	})
	return valid, executed
}

func TestAnEvictionRemovesAPlacementFromATaintedMemberOnceWithinItsBudget(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m1, m2 := f.joined("evict-a", "env=prod"), f.joined("evict-b", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m1, m2)
	work := crp.Name + "-work"
	for _, m := range []*registered{m1, m2} {
		m.apply(work, "")
	}
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 2 members")
	budget := &placement.ClusterResourcePlacementDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: crp.Name}, Spec: placement.PlacementDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(2))},
	}
	f.check(f.Create(context.Background(), budget))
	t.Cleanup(func() { _ = f.Delete(context.Background(), budget) })
	if valid, executed := f.evict(crp.Name, m1); valid.Reason != "ClusterResourcePlacementEvictionValid" ||
		executed.Reason != "ClusterResourcePlacementEvictionNotExecuted" ||
		!strings.Contains(executed.Message, "availablePlacements: 2, totalPlacements: 2") {
		t.Errorf("the budget allows it: %+v, %+v", valid, executed)
	}
	f.patch(budget, `{"spec":{"minAvailable":1}}`)
	f.eventually("the member is tainted", func() error {
		mc := m1.record()
		mc.Spec.Taints = []clusterv1beta1.Taint{{Key: "cordon-key", Value: "cordon-value", Effect: "NoSchedule"}}
		return f.Update(context.Background(), &mc)
	})
	if valid, executed := f.evict(crp.Name, m1); executed == nil || executed.Status != metav1.ConditionTrue ||
		executed.Reason != "ClusterResourcePlacementEvictionExecuted" {
		t.Fatalf("it is not executed: %+v, %+v", valid, executed)
	}
	// One of the two is going: nothing more may be disrupted.
	if _, executed := f.evict(crp.Name, m2); executed.Status != metav1.ConditionFalse ||
		!strings.Contains(executed.Message, "availablePlacements: 1, totalPlacements: 2") {
		t.Errorf("two are evicted at once: %+v", executed)
	}
	m1.remove(work)
	f.untilOn(crp, m2)
	f.untilSays(crp, "Scheduled", metav1.ConditionTrue, "1 members picked")
	f.eventually("what is gone cannot be evicted again", func() error {
		valid, executed := f.evict(crp.Name, m1)
		if valid.Status == metav1.ConditionTrue && executed.Status != metav1.ConditionFalse {
			t.Fatalf("it is: %+v", executed)
		}
		if valid.Reason != "ClusterResourcePlacementEvictionInvalid" { // until the hub's cache shows that it is gone
			return fmt.Errorf("it says %+v, %+v", valid, executed)
		}
		return nil
	})

	// Nothing is remembered of an eviction: without the taint the member is picked again, and
	// keeps what it gets.
	f.eventually("the taint is taken off", func() error {
		mc := m1.record()
		mc.Spec.Taints = nil
		return f.Update(context.Background(), &mc)
	})
	f.untilOn(crp, m1, m2)
	for _, w := range f.works(crp) {
		if w.DeletionTimestamp != nil || w.Annotations[placement.AnnotationEvicted] != "" {
			t.Errorf("the new Work is evicted: %+v", w.ObjectMeta)
		}
	}
}

func TestWhatANativeAgentKeepsIsEvictedAllTheSame(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m := f.joined("evict-native", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilOn(crp, m)
	name := crp.Name + "-work"
	m.apply(name, "")
	f.patch(&placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespaceName(), Name: name}},
		`{"metadata":{"annotations":{"muster/retains-applied":"true"}}}`)
	f.untilSays(crp, "Available", metav1.ConditionTrue, "")
	old := f.works(crp)[0].UID
	if _, executed := f.evict(crp.Name, m); executed == nil || executed.Status != metav1.ConditionTrue {
		t.Fatalf("it is not executed: %+v", executed)
	}
	f.untilSays(crp, "RolloutStarted", metav1.ConditionFalse, "earlier placed objects are being removed first")
	if w := f.works(crp)[0]; w.UID != old || len(w.Finalizers) != 1 {
		t.Fatalf("the hub took the finalizer off, so that nothing is removed: %+v", w.ObjectMeta)
	}
	m.remove(name)
	f.eventually("the member is picked anew, because nothing keeps it away", func() error {
		if works := f.works(crp); len(works) != 1 || works[0].UID == old || works[0].DeletionTimestamp != nil {
			return fmt.Errorf("the Works are %d", len(works))
		}
		return nil
	})
}

func TestAnEvictionThatCannotBeMeantIsInvalid(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m := f.joined("evict-fixed", "env=prod")
	if valid, _ := f.evict("none-"+f.workspace, m); valid.Status != metav1.ConditionFalse ||
		!strings.Contains(valid.Message, "there is no ClusterResourcePlacement") {
		t.Errorf("without a placement it is %+v", valid)
	}
	crp := f.crp(`
resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ` + shop + `}]
policy: {placementType: PickFixed, clusterNames: [` + m.name + `]}`)
	f.untilOn(crp, m)
	if valid, _ := f.evict(crp.Name, m); valid.Status != metav1.ConditionFalse || valid.Reason != "ClusterResourcePlacementEvictionInvalid" ||
		!strings.Contains(valid.Message, "clusterNames") {
		t.Errorf("of a PickFixed it is %+v", valid)
	}
	if works := f.works(crp); len(works) != 1 || works[0].DeletionTimestamp != nil {
		t.Error("it was evicted")
	}
	e := &placement.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e-"}, Spec: placement.PlacementEvictionSpec{PlacementName: crp.Name, ClusterName: m.name},
	}
	f.check(f.Create(context.Background(), e))
	t.Cleanup(func() { _ = f.Delete(context.Background(), e) })
	if err := f.Patch(context.Background(), e,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"clusterName":"other"}}`))); err == nil {
		t.Error("the spec of an eviction was changed")
	}
	both := &placement.ClusterResourcePlacementDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "both-" + f.workspace},
		Spec: placement.PlacementDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(1))}}
	if err := f.Create(context.Background(), both); err == nil || !strings.Contains(err.Error(), "exclude each other") {
		t.Errorf("a budget with both: %v", err)
	}
}

func TestAMemberAppliesWhatIsWrappedAndOverriddenAndLosesItByAnEviction(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("evicted", "env=prod")
	shop := f.shop()
	f.envelope(shop, "quotas",
		`quota: {apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: $NS}, spec: {hard: {pods: "7"}}}`)
	f.override(shop, "own", `
resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: replace, path: /data/a, value: `+
		`"${MEMBER-CLUSTER-NAME}"}]}]}
`)
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilSays(crp, "Applied", metav1.ConditionTrue, "")
	f.check(m.on.get(&corev1.ResourceQuota{}, shop, "small"))
	if got := m.appliedConfigMap(shop).Data["a"]; got != m.name {
		t.Errorf("the member has %q", got)
	}
	f.eventually("the member is tainted", func() error {
		mc := m.record()
		mc.Spec.Taints = []clusterv1beta1.Taint{{Key: "cordon-key", Value: "cordon-value", Effect: "NoSchedule"}}
		return f.Update(context.Background(), &mc)
	})
	if valid, executed := f.evict(crp.Name, m.registered); executed == nil || executed.Status != metav1.ConditionTrue {
		t.Fatalf("it is not executed: %+v, %+v", valid, executed)
	}
	f.eventually("the member has it no more", func() error {
		if err := m.on.get(&corev1.ResourceQuota{}, shop, "small"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the quota: %v", err)
		}
		return m.hasNothingOf(shop)
	})
	f.untilOn(crp)
}
