package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// untilCopied waits until the copy of the status of a placement says the same as the placement.
func (f fixture) untilCopied(crp *placement.ClusterResourcePlacement, namespace string) *placement.ClusterResourcePlacementStatus {
	f.t.Helper()
	copied := &placement.ClusterResourcePlacementStatus{}
	f.eventually("namespace "+namespace+" has the status of "+crp.Name, func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		if err := f.get(copied, namespace, crp.Name); err != nil {
			return err
		}
		want := crp.Status.DeepCopy()
		meta.RemoveStatusCondition(&want.Conditions, "ClusterResourcePlacementStatusSynced")
		if diff := cmp.Diff(*want, copied.SourceStatus); diff != "" {
			return fmt.Errorf("it differs: %s", diff)
		}
		return nil
	})
	return copied
}

func TestACopyOfTheStatusIsInTheNamespaceThatAPlacementSelects(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	m := f.joined("copied", "env=prod")
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop) + "statusReportingScope: NamespaceAccessible\nrevisionHistoryLimit: 3")
	f.untilOn(crp, m)
	f.untilSays(crp, "StatusSynced", metav1.ConditionTrue, "a copy of this status is in namespace "+shop)
	if c := meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementStatusSynced"); c.Reason != "StatusSyncSucceeded" {
		t.Errorf("its reason is %s", c.Reason)
	}
	if c := meta.FindStatusCondition(crp.Status.Conditions, placement.ConditionSupported); c != nil {
		t.Errorf("it asks for something that is not done: %s", c.Message)
	}
	m.apply(crp.Name+"-work", "")
	f.untilSays(crp, "Available", metav1.ConditionTrue, "")
	copied := f.untilCopied(crp, shop)
	if !metav1.IsControlledBy(copied, crp) || copied.LastUpdatedTime.IsZero() {
		t.Errorf("the copy is %+v, written at %v", copied.ObjectMeta, copied.LastUpdatedTime)
	}
	old := copied.UID
	f.check(f.Delete(context.Background(), copied))
	f.eventually("the copy is there again", func() error {
		if err := f.get(copied, shop, crp.Name); err != nil || copied.UID == old {
			return fmt.Errorf("it is %s: %w", copied.UID, err)
		}
		return nil
	})
	f.patch(crp, `{"spec":{"statusReportingScope":"ClusterScopeOnly"}}`)
	f.eventually("the copy is gone", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		if err := f.get(copied, shop, crp.Name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		if c := meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementStatusSynced"); c != nil {
			return fmt.Errorf("the placement says %+v", c)
		}
		return nil
	})
}

func TestACopyOfTheStatusOverwritesNobodyElsesAndNeedsOneNamespace(t *testing.T) {
	f := newFixture(t)
	shop := f.shop()
	foreign := &placement.ClusterResourcePlacementStatus{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "crp-" + f.workspace}, LastUpdatedTime: metav1.Now(),
	}
	f.check(f.Create(context.Background(), foreign))
	crp := f.crp(strings.ReplaceAll(prodOnly, "$SHOP", shop) + "statusReportingScope: NamespaceAccessible")
	f.untilSays(crp, "StatusSynced", metav1.ConditionFalse,
		"has a ClusterResourcePlacementStatus "+crp.Name+" that is not of this placement: delete it")
	now := &placement.ClusterResourcePlacementStatus{}
	f.check(f.get(now, shop, crp.Name))
	if now.UID != foreign.UID || now.ResourceVersion != foreign.ResourceVersion {
		t.Error("somebody else's object was written")
	}
	f.check(f.Delete(context.Background(), foreign))
	f.untilCopied(crp, shop)

	other := f.namespace("shop-")
	f.patch(crp, `{"spec":{"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","name":"`+shop+
		`"},{"group":"","version":"v1","kind":"Namespace","name":"`+other+`"}]}}`)
	f.untilSays(crp, "StatusSynced", metav1.ConditionFalse, "exactly one Namespace: this one selects 2")
	f.patch(crp, `{"spec":{"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","name":"`+other+`"}]}}`)
	f.untilCopied(crp, other)
	f.eventually("the copy has moved", func() error {
		if err := f.get(now, shop, crp.Name); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the old one: %v", err)
		}
		return nil
	})
}
