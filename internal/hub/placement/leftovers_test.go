package placement

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
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

// TestLeftoversThatCannotBeListedAreNotGone has a kind of KubeFleet's hub that is defined, but
// whose objects the hub may not list, or whose version is not served.
func TestLeftoversThatCannotBeListedAreNotGone(t *testing.T) {
	const resource = "clusterresourcesnapshots"
	scheme := runtime.NewScheme()
	if err := errors.Join(placement.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	group := schema.GroupResource{Group: placement.GroupVersion.Group, Resource: resource}
	notServed := apierrors.NewGenericServerResponse(404, "list", group, "", "404 page not found", 0, true)
	for what, refusal := range map[string]error{"forbidden": apierrors.NewForbidden(group, "", nil), "not served": notServed} {
		defined := interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
				if key.Name == resource+"."+placement.GroupVersion.Group {
					return nil
				}
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			},
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refusal },
		}
		api := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(defined).Build()
		c := &Controller{Deps: Deps{Deps: controller.Deps{Client: api, Live: api}}, memory: newMemory(clock.RealClock{})}
		of := ofCRP(&placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "u"}})
		waits, stays, err := c.removeLeftovers(t.Context(), of)
		if err != nil || len(stays) > 0 || !strings.Contains(waits, resource) {
			t.Errorf("%s: it waits for %q, %v stay, %v", what, waits, stays, err)
		}
	}
}
