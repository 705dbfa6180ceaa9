package kube

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestAnObjectOfACacheIsGoneIfTheAPIServerHasNoneOfItsUID has a cache that does not
// know of a restore yet.
func TestAnObjectOfACacheIsGoneIfTheAPIServerHasNoneOfItsUID(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	bundle := func(uid types.UID) *fleet.Bundle {
		return &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "later", UID: uid}}
	}
	down := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("the API server is away")
	}}
	for what, c := range map[string]struct {
		live       client.Reader
		gone, asks bool
	}{
		"it is there":                   {fake.NewClientBuilder().WithScheme(scheme).WithObjects(bundle("u")).Build(), false, true},
		"it is not there":               {fake.NewClientBuilder().WithScheme(scheme).Build(), true, true},
		"it is another one of its name": {fake.NewClientBuilder().WithScheme(scheme).WithObjects(bundle("other")).Build(), true, true},
		"nobody can say":                {fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(down).Build(), false, false},
	} {
		if gone, err := IsGone(t.Context(), c.live, fleet.GroupVersion.WithKind("Bundle"), bundle("u")); gone != c.gone ||
			(err == nil) != c.asks {
			t.Errorf("%s: gone %t, %v", what, gone, err)
		}
	}
}
