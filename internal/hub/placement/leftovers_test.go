package placement

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestALeftoverOfKubeFleetsHubIsProvedToBeOfThePlacement(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	s := ofRP(&placement.ResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "this", CreationTimestamp: metav1.NewTime(now)},
	})
	controlled := func(by types.UID) func(*metav1.ObjectMeta) {
		return func(o *metav1.ObjectMeta) {
			o.Finalizers = nil
			o.OwnerReferences = []metav1.OwnerReference{{Kind: "ResourcePlacement", Name: "web", UID: by, Controller: new(true)}}
		}
	}
	for name, c := range map[string]struct {
		change func(*metav1.ObjectMeta)
		want   bool
	}{
		"its finalizer proves it": {func(*metav1.ObjectMeta) {}, true},
		"another finalizer does not": {func(o *metav1.ObjectMeta) { o.Finalizers = []string{"kubernetes-fleet.io/unheard-of"} },
			false},
		"its controller, by UID, proves it":          {controlled("this"), true},
		"another controller of that name refutes it": {controlled("other"), false},
		"a similar name of a placement refutes it":   {func(o *metav1.ObjectMeta) { o.Labels[placement.LabelParentCRP] = "web-2" }, false},
		"no label refutes it":                        {func(o *metav1.ObjectMeta) { o.Labels = nil }, false},
		"the label of Muster refutes it":             {func(o *metav1.ObjectMeta) { o.Labels[fleet.LabelManaged] = "true" }, false},
		"another namespace refutes it":               {func(o *metav1.ObjectMeta) { o.Namespace = "other" }, false},
		"an earlier placement of that name had it": {func(o *metav1.ObjectMeta) { o.CreationTimestamp = metav1.NewTime(now.Add(-time.Second)) },
			false},
		"it goes, and others keep it": {func(o *metav1.ObjectMeta) {
			o.Finalizers, o.DeletionTimestamp = []string{"example.com/hold"}, new(metav1.NewTime(now))
		}, true},
	} {
		o := &metav1.ObjectMeta{Namespace: "shop", Name: "web-1", CreationTimestamp: metav1.NewTime(now),
			Finalizers: []string{"kubernetes-fleet.io/scheduler-cleanup"},
			Labels:     map[string]string{placement.LabelParentCRP: "web"}}
		c.change(o)
		if got := leftOf(s, o); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
