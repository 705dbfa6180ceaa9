package placement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// asking returns the condition of a placement that misses so many ConfigMaps without a cause.
func asking(t *testing.T, missing int, name string, change func(*observed)) condition {
	t.Helper()
	s := ofCRP(&placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	s.spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "shop"}}
	o := observed{kind: s.kind, before: placement.PlacementStatus{ResourceHash: "other"}}
	for i := range missing {
		o.before.SelectedResources = append(o.before.SelectedResources, placement.ResourceIdentifier{
			Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf(name, i),
		})
	}
	change(&o)
	sick := interceptor.NewClient(nil,
		interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New(strings.Repeat("no answer ", 200))
		}})
	c := &Controller{Deps: Deps{Deps: controller.Deps{Live: sick}}}
	c.requireCauses(t.Context(), s, &o)
	return o.unfounded
}

func TestAMessageNamesWhatWouldBeRemovedAndStaysBounded(t *testing.T) {
	same := func(*observed) {}
	withheld := func(o *observed) {
		o.author = strings.Repeat("a", 64<<10)
		o.selected.Withheld = []selection.Query{{Namespace: "shop"}}
	}
	for name, row := range map[string]struct {
		missing int
		name    string
		change  func(*observed)
		want    string
	}{
		"one": {
			1, "c%d", same, "; to have ConfigMap shop/c0 removed from members all the same, muster confirm placements web, or " +
				"kubectl annotate --overwrite clusterresourceplacement web ",
		},
		"many":                            {30, "c%02d", same, "; to have ConfigMap shop/c00, ConfigMap shop/c01, "},
		"of many the first ten":           {30, "c%02d", same, ", ConfigMap shop/c09 and 20 more removed from members all the same"},
		"with long names":                 {30, strings.Repeat("n", 250) + "%02d", same, " and 20 more removed"},
		"of an author with a long name":   {1, "c%d", withheld, "aaa...; placed objects stay as they are; to have ConfigMap shop/c0 removed"},
		"an object that is back is there": {0, "", func(o *observed) { o.selected.Objects = []*unstructured.Unstructured{{}} }, ""},
	} {
		got := asking(t, row.missing, row.name, row.change)
		held := &placement.ClusterResourcePlacement{}
		held.Status.Conditions = []metav1.Condition{got.as("ClusterResourcePlacementResourceSelected", 1, now)}
		message, value := view.HeldRemoval(held)
		if message != got.message || !strings.HasSuffix(message, value) || (value == "") != (message == "") {
			t.Errorf("%s: of %s users see %q to be confirmed by %q", name, got.message, message, value)
		}
		if !strings.Contains(got.message, row.want) || (got.message == "") != (row.want == "") || len(got.message) > kube.MaxMessage {
			t.Errorf("%s: %d bytes: %s", name, len(got.message), got.message)
		}
	}
}

// TestAnEnvelopeThatCannotBeReadTakesNothingAway is for a hub that ended before the status of the
// placement listed the envelope: only the Work names it.
func TestAnEnvelopeThatCannotBeReadTakesNothingAway(t *testing.T) {
	const hook = "ValidatingWebhookConfiguration"
	s := ofCRP(&placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
	s.spec.ResourceSelectors = []placement.ResourceSelector{{
		Group: placement.GroupVersion.Group, Version: "v1beta1", Kind: "ClusterResourceEnvelope", Name: "hooks",
	}}
	wrapped := placement.ResourceIdentifier{Group: "admissionregistration.k8s.io", Version: "v1", Kind: hook, Name: "web"}
	object := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": hook, "metadata": map[string]any{"name": "web"}},
	}
	o := observed{key: s.key, kind: s.kind, spec: s.spec, resources: selection.Resources{Objects: []*unstructured.Unstructured{object},
		Envelopes: map[placement.ResourceIdentifier]placement.EnvelopeIdentifier{wrapped: {Name: "hooks", Type: "ClusterResourceEnvelope"}}}}
	var err error
	if o.parts, err = pack(o.resources.Objects, nil, maxManifests, false); err != nil {
		t.Fatal(err)
	}
	work := o.desiredWorks().work(s.key, 0, target{name: "m", namespace: "m"})
	if got, want := work.Annotations[placement.AnnotationEnvelopes],
		"ClusterResourceEnvelope.placement.kubernetes-fleet.io hooks"; got != want {
		t.Errorf("the Work names %q, want %q", got, want)
	}
	gone := apierrors.NewNotFound(schema.GroupResource{Group: placement.GroupVersion.Group, Resource: "clusterresourceenvelopes"}, "hooks")
	for name, row := range map[string]struct {
		answer error
		held   string
	}{
		"forbidden": {apierrors.NewForbidden(schema.GroupResource{Resource: "clusterresourceenvelopes"}, "hooks", errors.New("no")),
			"ClusterResourceEnvelope hooks: reading"},
		"no answer": {errors.New("connection refused"), "ClusterResourceEnvelope hooks: reading"},
		"deleted":   {gone, ""},
	} {
		live := interceptor.NewClient(nil,
			interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return row.answer
			}})
		c := &Controller{Deps: Deps{Deps: controller.Deps{Live: live, Config: settings.New(nil, nil, "")}}}
		after := observed{key: s.key, kind: s.kind, before: placement.PlacementStatus{ResourceHash: "other"}, parts: []part{{}},
			home: home{identity(hook, "admissionregistration.k8s.io/v1", "", "web"): 0}, current: map[string]*currentWorks{
				"m": {works: []*placement.Work{work}},
			}}
		c.requireCauses(t.Context(), s, &after)
		if got := after.unfounded.message; !strings.Contains(got, row.held) || (got == "") != (row.held == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
