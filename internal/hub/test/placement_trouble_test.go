package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestOfTwoPlacementsOfOneObjectTheSecondSaysWhoseItIsAndFollowsTheFirst(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("twice", "env=prod")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "twice-" + f.workspace}}
	f.check(f.Create(context.Background(), role))
	spec := strings.ReplaceAll(prodOnly, `group: "", version: v1, kind: Namespace, name: $SHOP`,
		"group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: "+role.Name)
	first := f.crp(spec)
	f.untilSays(first, "Available", metav1.ConditionTrue, "")
	second := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp-second-" + f.workspace}, Spec: first.Spec}
	f.check(f.Create(context.Background(), second))
	t.Cleanup(func() { f.dispose(second) })
	f.untilSays(second, "Applied", metav1.ConditionFalse, fmt.Sprintf("%s: ClusterRole %s: Work %s-work has applied it already: take it out "+
		"of one of the two, or set applyStrategy.allowCoOwnership", m.name, role.Name, first.Name))
	f.untilSays(first, "Applied", metav1.ConditionTrue, "")
	f.check(f.Delete(context.Background(), first))
	f.untilSays(second, "Applied", metav1.ConditionTrue, "")
	f.check(m.on.get(&rbacv1.ClusterRole{}, "", role.Name))
}

func TestAPlacementDeletedWhileItIsAppliedLeavesNothing(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("hasty", "env=prod")
	shop := f.shop()
	for i := range 100 {
		f.check(f.Create(context.Background(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: fmt.Sprintf("many-%d", i)},
		}))
	}
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	owner := &placement.AppliedWork{}
	f.eventually("the agent has begun", func() error { return m.on.get(owner, "", crp.Name+"-work") })
	f.check(f.Delete(context.Background(), crp))
	f.eventually("the placement is gone", func() error {
		if err := f.get(crp, "", crp.Name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v; it says %q", err, crp.Status.Message)
		}
		return nil
	})
	f.eventually("the member has nothing of it", func() error {
		if err := m.on.get(&corev1.Namespace{}, "", shop); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the namespace: %v", err)
		}
		return m.hasNothingOf(shop)
	})
}

func TestAPlacementNamesTheFinalizerThatKeepsItFromBeingRemoved(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("blocked", "env=prod")
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilSays(crp, "Available", metav1.ConditionTrue, "")
	m.hold(shop, `["example.com/hold"]`)
	f.check(f.Delete(context.Background(), crp))
	f.eventually("it says what blocks", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		if want := fmt.Sprintf("ConfigMap %s/settings waits for finalizer example.com/hold", shop); !strings.Contains(crp.Status.Message, want) {
			return fmt.Errorf("it says %q, want it to name %q", crp.Status.Message, want)
		}
		return nil
	})
	m.hold(shop, "null")
	f.eventually("the placement is gone", func() error {
		if err := f.get(crp, "", crp.Name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v; it says %q", err, crp.Status.Message)
		}
		return nil
	})
}
