package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// boundTo are the ClusterResourceBindings of a member, as kubectl fleet draincluster looks for
// them.
func (f fixture) boundTo(m *registered) (bound []placement.ClusterResourceBinding) {
	f.t.Helper()
	var all placement.ClusterResourceBindingList
	f.check(f.List(context.Background(), &all))
	for _, b := range all.Items {
		if b.Spec.TargetCluster == m.name {
			bound = append(bound, b)
		}
	}
	return bound
}

// untilBound waits until a member has one binding, with a state and conditions for its
// present generation.
func (f fixture) untilBound(m *registered, state placement.BindingState, index, said string) *placement.ClusterResourceBinding {
	f.t.Helper()
	var found *placement.ClusterResourceBinding
	f.eventually(fmt.Sprintf("%s is %s to revision %s: %s", m.name, state, index, said), func() error {
		bound := f.boundTo(m)
		if len(bound) != 1 {
			return fmt.Errorf("it has %d bindings", len(bound))
		}
		found = &bound[0]
		if got := stages(found.Status.Conditions); found.Spec.State != state || got != said ||
			!strings.HasSuffix(found.Spec.ResourceSnapshotName, "-"+index+"-snapshot") {
			return fmt.Errorf("it is %+v: %s", found.Spec, got)
		}
		for _, c := range found.Status.Conditions {
			if c.ObservedGeneration != found.Generation {
				return fmt.Errorf("the conditions are of generation %d, not %d", c.ObservedGeneration, found.Generation)
			}
		}
		return nil
	})
	return found
}

const boundWell = "RolloutStarted=True Overridden=True WorkSynchronized=True Applied=True Available=True"

// TestABindingShowsWhatAMemberHasUntilItIsDrained plays kubectl fleet draincluster,
// which lists bindings.
func TestABindingShowsWhatAMemberHasUntilItIsDrained(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	m := f.scripted("drained", script{})
	m.label("env=prod")
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	b := f.untilBound(m, placement.BindingBound, "0", boundWell)
	work := f.works(crp)[0]
	if b.Name != work.Labels[placement.LabelParentBinding] || b.Labels[placement.LabelParentCRP] != crp.Name ||
		!metav1.IsControlledBy(b, crp) {
		t.Errorf("it is %+v, of Work %v", b.ObjectMeta, work.Labels)
	}
	if b.Generation != 1 {
		t.Errorf("its spec was written %d times", b.Generation)
	}
	f.check(f.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "more"}}))
	if b = f.untilBound(m, placement.BindingBound, "1", boundWell); b.Generation != 2 {
		t.Errorf("its spec was written %d times for two revisions", b.Generation)
	}
	f.check(f.Delete(ctx, b))
	f.eventually("a binding that somebody deleted is there again", func() error {
		if bound := f.boundTo(m); len(bound) != 1 || bound[0].UID == b.UID {
			return fmt.Errorf("there are %d", len(bound))
		}
		return nil
	})
	f.untilBound(m, placement.BindingBound, "1", boundWell)

	// A forged binding delivers nothing to any member, and the hub leaves it alone.
	forged := &placement.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name: "forged-" + f.workspace, Labels: map[string]string{placement.LabelParentCRP: crp.Name},
	},
		Spec: placement.ResourceBindingSpec{State: placement.BindingBound, TargetCluster: "nobody-" + f.workspace}}
	f.check(f.Create(ctx, forged))
	t.Cleanup(func() { _ = f.Delete(ctx, forged) })

	f.eventually("the member is tainted", func() error {
		mc := m.record()
		mc.Spec.Taints = []clusterv1beta1.Taint{{Key: "cordon-key", Value: "cordon-value", Effect: "NoSchedule"}}
		return f.Update(ctx, &mc)
	})
	if valid, executed := f.evict(b.Labels[placement.LabelParentCRP], m); executed == nil || executed.Status != metav1.ConditionTrue {
		t.Fatalf("it is not executed: %+v, %+v", valid, executed)
	}
	f.eventually("the member has no binding", func() error {
		if bound := f.boundTo(m); len(bound) > 0 {
			return fmt.Errorf("there are %d", len(bound))
		}
		return nil
	})
	f.untilOn(crp)
	f.check(f.Get(ctx, client.ObjectKeyFromObject(forged), forged))
}

// TestBindingsOfAResourcePlacementAreWrittenByTheHubOnly plays a tenant who may do everything in
// the namespace of the placement.
func TestBindingsOfAResourcePlacementAreWrittenByTheHubOnly(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	m := f.scripted("bound", script{})
	shop := f.shop()
	rp := &placement.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}}
	f.check(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(`
resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
policy: {affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: `+
		`{matchLabels: {test: $TEST}}}]}}}}
`, "$TEST", f.workspace)), &rp.Spec))
	f.check(f.Create(ctx, rp))
	var bound placement.ResourceBindingList
	f.eventually("it has a binding", func() error {
		if err := f.List(ctx, &bound, client.InNamespace(shop)); err != nil {
			return err
		}
		if len(bound.Items) != 1 || stages(bound.Items[0].Status.Conditions) != boundWell {
			return fmt.Errorf("they are %+v", bound.Items)
		}
		return nil
	})
	b := &bound.Items[0]
	if b.Spec.TargetCluster != m.name || b.Spec.State != placement.BindingBound || b.Spec.ResourceSnapshotName != "settings-0-snapshot" {
		t.Errorf("it is %+v", b.Spec)
	}
	tenant, _ := f.userWith(shop, "tenant", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	f.eventually("a tenant reads it", func() error { return tenant.Get(ctx, client.ObjectKeyFromObject(b), b.DeepCopy()) })
	forged := &placement.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "forged"}, Spec: b.Spec}
	f.denied("to create one", func() error { return tenant.Create(ctx, forged.DeepCopy()) })
	f.denied("to delete one", func() error { return tenant.Delete(ctx, b.DeepCopy()) })
	f.denied("to change one", func() error { return merge(tenant, b.DeepCopy(), `{"spec":{"targetCluster":"other"}}`) })
	f.denied("to change its status", func() error { return writeStatus(tenant, b, `{"conditions":[]}`) })
	f.check(f.Delete(ctx, rp))
	f.eventually("it goes with its placement", func() error {
		if err := f.List(ctx, &bound, client.InNamespace(shop)); err != nil {
			return err
		}
		if len(bound.Items) > 0 {
			return fmt.Errorf("there are %d", len(bound.Items))
		}
		return nil
	})
}

// TestAHubThatStartsAgainWritesNoBindings has the hub look at everything anew.
func TestAHubThatStartsAgainWritesNoBindings(t *testing.T) {
	f := newAlone(t, "")
	m := f.scripted("again", script{})
	m.label("env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", f.shop()))
	before := f.untilBound(m, placement.BindingBound, "0", boundWell)
	f.restartHub()
	f.change(crp, func() { crp.Spec.RevisionHistoryLimit = ptr.To(int32(3)) })
	f.untilSays(crp, "Available", metav1.ConditionTrue, "") // of the new generation
	if after := f.boundTo(m); len(after) != 1 || after[0].ResourceVersion != before.ResourceVersion {
		t.Errorf("it was %+v, and they are %+v", before, after)
	}
}

// TestWorksThatGrowUnderMusterKeepTheBindingOfKubeFleetsHub: that hub, were it to come back, finds
// the Works of a member by the name of one binding, and cannot write a Work whose name is taken.
func TestWorksThatGrowUnderMusterKeepTheBindingOfKubeFleetsHub(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	m := f.scripted("grown", script{})
	m.label("env=prod")
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilBound(m, placement.BindingBound, "0", boundWell)
	first, theirs := f.works(crp)[0], crp.Name+"-"+m.name+"-1a2b3c4d"
	f.check(merge(f, first.DeepCopy(), fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, placement.LabelParentBinding, theirs)))
	for _, name := range []string{"large", "larger"} {
		f.check(f.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name},
			Data: map[string]string{"a": strings.Repeat("a", 700<<10)}}))
	}
	f.eventually("the member has more Works, all of one binding", func() error {
		works := f.works(crp)
		for _, work := range works {
			if got := work.Labels[placement.LabelParentBinding]; got != theirs {
				return fmt.Errorf("Work %s is of %s", work.Name, got)
			}
			if work.Name == first.Name && (work.UID != first.UID || work.DeletionTimestamp != nil) {
				t.Fatal("the first Work was made anew")
			}
		}
		if bound := f.boundTo(m); len(works) < 2 || len(bound) != 1 || bound[0].Name != theirs {
			return fmt.Errorf("there are %d Works and the bindings %v", len(works), bound)
		}
		return nil
	})
}
