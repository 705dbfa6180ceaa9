package selection

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// TestOnlyAFactIsACause has an object that was placed missing from the selection, for every
// reason that there is.
func TestOnlyAFactIsACause(t *testing.T) {
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "shop"}}}
	unlabelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	going := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", DeletionTimestamp: &metav1.Time{Time: metav1.Now().Time}, Finalizers: []string{"kubernetes"}},
	}
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Labels: map[string]string{"app": "db"}}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}

	whole := placement.ResourceSelector{Version: "v1", Kind: "Namespace", Name: "shop", SelectionScope: placement.NamespaceWithResources}
	byLabel := placement.ResourceSelector{
		Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}},
	}
	alone := placement.ResourceSelector{Version: "v1", Kind: "Namespace", Name: "shop", SelectionScope: placement.NamespaceOnly}
	within := placement.ResourceSelector{
		Version: "v1", Kind: "Namespace", LabelSelector: byLabel.LabelSelector, SelectionScope: placement.NamespaceWithResourceSelectors,
	}
	configMaps := placement.ResourceSelector{Version: "v1", Kind: "ConfigMap"}
	labelled := placement.ResourceSelector{
		Version: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
	}
	another := placement.ResourceSelector{Version: "v1", Kind: "ConfigMap", Name: "another"}

	configMap := schema.GroupResource{Resource: "configmaps"}
	failures := map[string]error{
		"forbidden":          apierrors.NewForbidden(configMap, "data", errors.New("no")),
		"an error":           apierrors.NewInternalError(errors.New("etcd")),
		"a time-out":         apierrors.NewTimeoutError("late", 1),
		"no such kind":       &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "ConfigMap"}},
		"no path to it":      apierrors.NewGenericServerResponse(404, "get", configMap, "data", "404 page not found", 0, true),
		"an API that sleeps": apierrors.NewServiceUnavailable("the server is currently unable to handle the request"),
	}
	clusterwide, namespaced := types.NamespacedName{Name: "web"}, types.NamespacedName{Namespace: "shop", Name: "web"}
	for _, row := range []struct {
		name      string
		user      types.NamespacedName
		selectors []placement.ResourceSelector
		live      []client.Object
		fails     string // on ConfigMaps
		want      Cause
	}{
		{
			"it is there, in a Namespace that is selected by name", clusterwide, []placement.ResourceSelector{whole},
			[]client.Object{shop, data}, "", NoCause,
		},
		{"and by labels", clusterwide, []placement.ResourceSelector{byLabel}, []client.Object{shop, data}, "", NoCause},
		{"somebody deleted it", clusterwide, []placement.ResourceSelector{whole}, []client.Object{shop}, "", SourceDeleted},
		{"somebody deleted its Namespace", clusterwide, []placement.ResourceSelector{whole}, []client.Object{data}, "", SourceDeleted},
		{"its Namespace is being deleted", clusterwide, []placement.ResourceSelector{whole}, []client.Object{going, data}, "", SourceDeleted},
		{
			"its Namespace has lost the label", clusterwide, []placement.ResourceSelector{byLabel}, []client.Object{unlabelled, data},
			"", NamespaceLabelsChanged,
		},
		{
			"the Namespace is selected alone now", clusterwide, []placement.ResourceSelector{alone},
			[]client.Object{shop, data}, "", SelectorsChanged,
		},
		{"no selector is left", clusterwide, nil, []client.Object{shop, data}, "", SelectorsChanged},
		{
			"it is there, and selected within its Namespace", clusterwide, []placement.ResourceSelector{within, labelled},
			[]client.Object{shop, data}, "", NoCause,
		},
		{
			"it lost the label that it is selected by within its Namespace", clusterwide, []placement.ResourceSelector{within, labelled},
			[]client.Object{shop, other}, "", LabelsChanged,
		},
		{
			"the Namespace within which it is selected lost its label", clusterwide, []placement.ResourceSelector{within, labelled},
			[]client.Object{unlabelled, data}, "", NamespaceLabelsChanged,
		},
		{
			"another name is selected within its Namespace", clusterwide, []placement.ResourceSelector{within, another},
			[]client.Object{shop, data}, "", SelectorsChanged,
		},
		{"of a ResourcePlacement it is there", namespaced, []placement.ResourceSelector{configMaps}, []client.Object{data}, "", NoCause},
		{"of a ResourcePlacement it is deleted", namespaced, []placement.ResourceSelector{configMaps}, nil, "", SourceDeleted},
		{
			"of a ResourcePlacement it lost its label", namespaced, []placement.ResourceSelector{labelled},
			[]client.Object{other}, "", LabelsChanged,
		},
		{
			"of a ResourcePlacement another one is selected", namespaced, []placement.ResourceSelector{another},
			[]client.Object{data}, "", SelectorsChanged,
		},
		{"the hub may not read it", clusterwide, []placement.ResourceSelector{whole}, []client.Object{shop, data}, "forbidden", NoCause},
		{"the hub may not read what is not there", clusterwide, []placement.ResourceSelector{whole}, []client.Object{shop}, "forbidden", NoCause},
		{"reading it fails", clusterwide, []placement.ResourceSelector{whole}, []client.Object{shop}, "an error", NoCause},
		{"reading it takes too long", clusterwide, []placement.ResourceSelector{whole}, []client.Object{shop}, "a time-out", NoCause},
		{"discovery does not have its kind", clusterwide, []placement.ResourceSelector{whole}, []client.Object{shop}, "no such kind", NoCause},
		{"its kind is not served", clusterwide, []placement.ResourceSelector{whole}, []client.Object{shop}, "no path to it", NoCause},
		{"its API does not answer", clusterwide, []placement.ResourceSelector{whole}, []client.Object{shop}, "an API that sleeps", NoCause},
		{
			"who changed the selectors needs no answer", clusterwide, []placement.ResourceSelector{alone}, []client.Object{shop},
			"an error", SelectorsChanged,
		},
	} {
		get := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if err := failures[row.fails]; err != nil && o.GetObjectKind().GroupVersionKind().Kind == "ConfigMap" {
				return err
			}
			return c.Get(ctx, key, o, options...)
		}}
		live := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(row.live...).WithInterceptorFuncs(get).Build()
		got, unknown := NewCauses(live, row.user, row.selectors).Of(t.Context(), placement.ResourceIdentifier{
			Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "data",
		})
		if got != row.want || (got == NoCause) != (unknown != "") || strings.Contains(unknown, "\n") {
			t.Errorf("%s: the cause is %q (%s), want %q", row.name, got, unknown, row.want)
		}
	}
}

// TestAddressesThatAServiceMakesMayGo has Endpoints that were placed as long as their
// Service had no selector.
func TestAddressesThatAServiceMakesMayGo(t *testing.T) {
	live := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-x"}}).Build()
	selectors := []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "shop"}}
	got, unknown := NewCauses(live, types.NamespacedName{Name: "web"}, selectors).Of(t.Context(), placement.ResourceIdentifier{
		Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice", Namespace: "shop", Name: "web-x",
	})
	if got != MadeAnywhere {
		t.Errorf("the cause is %q (%s)", got, unknown)
	}
}
