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

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// annotate sets the policy of the record.
func (r *registered) annotate(policy string) {
	r.t.Helper()
	mc := r.record()
	r.check(r.Patch(context.Background(), &mc, client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, clusterv1beta1.AnnotationLeavePolicy, policy))))
}

func (d *delivering) hold(shop, finalizers string) {
	d.t.Helper()
	d.check(d.on.Patch(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}},
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))))
}

func TestAMemberThatLeavesIsEmptiedFirstAndNamesWhatBlocksIt(t *testing.T) {
	f := newAlone(t, "")
	m := f.delivering("emptied", "env=prod")
	shop := f.shop()
	f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.eventually("the member has it", func() error { return m.has(shop) })
	m.hold(shop, `["example.com/hold"]`)

	record := m.record()
	f.check(f.Delete(context.Background(), &record))
	f.eventually("the record says what blocks", func() error {
		joined := m.until("Joined", metav1.ConditionTrue, "Leaving")
		if !strings.Contains(joined.Message, "left") || !strings.Contains(joined.Message, "example.com/hold") {
			return fmt.Errorf("it says %q", joined.Message)
		}
		return nil
	})
	m.agent.stop()
	f.restartHub()
	m.agent.start()
	m.hold(shop, "null")
	m.untilGone()
	f.check(m.hasNothingOf(shop))
}

func TestAMemberThatLeavesGoesAfterWhatWasPlaced(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("soon", "env=prod")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "placed-" + f.workspace}}
	f.check(f.Create(context.Background(), role))
	f.crp(strings.ReplaceAll(prodOnly, `group: "", version: v1, kind: Namespace, name: $SHOP`,
		"group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: "+role.Name))
	f.eventually("the member has it", func() error { return m.on.get(&rbacv1.ClusterRole{}, "", role.Name) })
	record := m.record()
	f.check(f.Delete(context.Background(), &record))
	f.eventually("the record is gone", func() error {
		if err := f.get(&clusterv1beta1.MemberCluster{}, "", m.name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
	if err := m.on.get(&rbacv1.ClusterRole{}, "", role.Name); !apierrors.IsNotFound(err) {
		t.Errorf("the record went before what was placed: %v", err)
	}
	m.untilGone()
}

func TestAMemberThatLeavesWithPolicyOrphanKeepsWhatItHas(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("orphan", "env=prod")
	shop := f.shop()
	f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.eventually("the member has it", func() error { return m.has(shop) })
	m.annotate("Keep")
	unsupported := m.until("Supported", metav1.ConditionFalse, "LeavePolicyInvalid")
	if !strings.Contains(unsupported.Message, `"Keep": want Delete or Orphan`) {
		t.Errorf("it says %q", unsupported.Message)
	}
	m.annotate("Orphan")
	record := m.record()
	f.check(f.Delete(context.Background(), &record))
	m.untilGone()
	f.check(m.has(shop))
}

// TestAMemberNamespaceDeletedByMistakeTakesNothingOffTheMember deletes the member namespace by
// hand, with everything in it. The placed objects must stay, because no user requested their
// removal.
func TestAMemberNamespaceDeletedByMistakeTakesNothingOffTheMember(t *testing.T) {
	f := newFixture(t)
	m := f.delivering("mistake", "env=prod")
	shop := f.shop()
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop))
	f.untilSays(crp, "Available", metav1.ConditionTrue, "on all 1 members")
	var before, namespace corev1.Namespace
	f.check(m.on.get(&before, "", shop))
	settings := &corev1.ConfigMap{}
	f.check(m.on.get(settings, shop, "settings"))
	f.check(f.get(&namespace, "", m.namespaceName()))
	f.check(f.Delete(context.Background(), namespace.DeepCopy()))
	f.eventually("the namespace is made anew", func() error {
		var again corev1.Namespace
		if err := f.get(&again, "", m.namespaceName()); err != nil {
			return err
		}
		if again.UID == namespace.UID {
			return fmt.Errorf("it is still there: %v", again.Status.Conditions)
		}
		return nil
	})
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	f.check(f.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "after"}}))
	f.eventually("the member follows again", func() error { return m.on.get(&corev1.ConfigMap{}, shop, "after") })
	uid := settings.UID
	f.check(m.on.get(settings, shop, "settings"))
	if settings.UID != uid || settings.DeletionTimestamp != nil {
		t.Errorf("it was removed in between: %+v", settings.ObjectMeta)
	}
}
