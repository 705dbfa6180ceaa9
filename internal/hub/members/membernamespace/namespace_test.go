package membernamespace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestNoNamespaceIsCreatedForARecordThatOnlyTheCacheShows is what a hub meets whose API server was
// restored from a snapshot of before the record.
func TestNoNamespaceIsCreatedForARecordThatOnlyTheCacheShows(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, fleet.AddToScheme, clusterv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for kind, record := range map[string]func(uid types.UID) client.Object{
		"Cluster": func(uid types.UID) client.Object {
			return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web", UID: uid}}
		},
		"MemberCluster": func(uid types.UID) client.Object {
			return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: uid}}
		},
	} {
		for name, c := range map[string]struct {
			there   client.Object
			created bool
		}{
			"it is there":                    {record("1"), true},
			"it is gone":                     {nil, false},
			"another one of its name is now": {record("2"), false},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				server := fake.NewClientBuilder().WithScheme(scheme)
				if c.there != nil {
					server.WithObjects(c.there)
				}
				api, m := server.Build(), Of(record("1"))
				state, _, err := m.CreateNamespace(t.Context(), api, api)
				if created := err == nil && state == NamespaceOurs; created != c.created {
					t.Errorf("state %q, error %v", state, err)
				}
				if got := api.Get(t.Context(), client.ObjectKey{Name: m.Namespace}, &corev1.Namespace{}); apierrors.IsNotFound(got) == c.created {
					t.Errorf("reading the namespace: %v", got)
				}
			})
		}
	}
}
