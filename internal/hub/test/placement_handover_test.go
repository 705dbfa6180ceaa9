package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// TestWhatHasGrownMovesToAnotherWorkAndStaysOnTheMember lets objects of a placed namespace grow
// until their Work cannot hold them, with a real agent, which must not delete what moves.
func TestWhatHasGrownMovesToAnotherWorkAndStaysOnTheMember(t *testing.T) {
	f := newFixture(t)
	e, ctx := f.elsewhere("grown"), context.Background()
	shop := e.placed()
	crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp-" + f.workspace}}
	big := func(size int) map[string]string { return map[string]string{"a": strings.Repeat("x", size<<10)} }
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	catalog := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "catalog"}, Data: big(400)}
	prices := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "prices"}, Data: big(400)}
	for _, o := range []client.Object{claim, catalog, prices} {
		e.check(f.Create(ctx, o))
	}
	all := func() (map[string]types.UID, error) {
		found, failed := map[string]types.UID{}, []error{}
		for name, o := range map[string]client.Object{
			"data": &corev1.PersistentVolumeClaim{}, "web": &corev1.Service{}, "password": &corev1.Secret{},
			"settings": &corev1.ConfigMap{}, "catalog": &corev1.ConfigMap{}, "prices": &corev1.ConfigMap{},
		} {
			err := e.on.get(o, shop, name)
			found[name], failed = o.GetUID(), append(failed, err)
		}
		return found, errors.Join(failed...)
	}
	var before map[string]types.UID
	e.eventually("the member has all", func() (err error) { before, err = all(); return err })

	grown := func(step string, c *corev1.ConfigMap, size, works int) {
		t.Helper()
		f.change(c, func() { c.Data = big(size) })
		e.eventually(step, func() error {
			is := &corev1.ConfigMap{}
			if err := e.on.get(is, shop, c.Name); err != nil || len(is.Data["a"]) != size<<10 {
				return fmt.Errorf("it has %d bytes (%w)", len(is.Data["a"]), err)
			}
			var owners []string
			for _, owner := range is.OwnerReferences {
				owners = append(owners, owner.Name)
			}
			if number := len(f.works(crp)); number != works || len(owners) != 1 {
				return fmt.Errorf("there are %d Works, and it is owned by %v", number, owners)
			}
			return nil
		})
		after, err := all()
		e.check(err)
		for name, uid := range before {
			if after[name] != uid {
				t.Errorf("%s: %s was made anew on the member", step, name)
			}
		}
	}
	grown("it moves to a second Work", catalog, 900, 2)
	grown("it stays where it is, also when it is smaller", catalog, 100, 2)
	orders := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "orders"}, Data: big(400)}
	e.check(f.Create(ctx, orders))
	e.eventually("what is new fills the first Work", func() error { return e.on.get(&corev1.ConfigMap{}, shop, "orders") })
	grown("another one moves to a third Work", prices, 900, 3)
}
