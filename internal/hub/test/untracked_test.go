package hub_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

// TestObjectsOfTheHubAreUntrackedAfterAChange delivers twice. The status of the agent must not make
// the API server track the object again.
func TestObjectsOfTheHubAreUntrackedAfterAChange(t *testing.T) {
	f := newFixture(t)
	e := f.elsewhere("untracked")
	target, shop := e.release(), e.placed()

	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "app"}}
	f.change(bundle, func() {
		bundle.Spec.Resources[0].Content = "{apiVersion: v1, kind: ConfigMap, metadata: {name: second}}"
	})
	f.eventually("the second version is delivered", func() error { return e.on.get(&corev1.ConfigMap{}, target, "second") })
	f.untilBundle("app", fleet.ConditionReady, corev1.ConditionTrue)
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}}
	f.change(settings, func() { settings.Data = map[string]string{"changed": "true"} })
	f.eventually("the change is applied", func() error {
		found := &corev1.ConfigMap{}
		if err := e.on.get(found, shop, "settings"); err != nil || found.Data["changed"] == "" {
			return fmt.Errorf("it is %v (%w)", found.Data, err)
		}
		return nil
	})

	for _, list := range []client.ObjectList{&fleet.BundleDeploymentList{}, &placement.WorkList{}, &coordinationv1.LeaseList{}} {
		f.check(f.List(context.Background(), list, client.InNamespace(naming.MemberNamespace(f.workspace, e.name))))
		items, err := meta.ExtractList(list)
		f.check(err)
		if len(items) == 0 {
			t.Errorf("there is no object in %T", list)
		}
		for _, item := range items {
			if o := item.(client.Object); len(o.GetManagedFields()) > 0 {
				t.Errorf("%T %s has the managers %v", o, o.GetName(), managers(o))
			}
		}
	}
	for _, o := range []client.Object{e.record(), bundle} {
		f.check(f.Get(context.Background(), client.ObjectKeyFromObject(o), o))
		if got := managers(o); !slices.Contains(got, "muster-hub") || len(got) < 2 {
			t.Errorf("%T of a user has only the managers %v", o, got)
		}
	}
}

func managers(o client.Object) []string {
	var names []string
	for _, entry := range o.GetManagedFields() {
		names = append(names, entry.Manager)
	}
	return names
}
