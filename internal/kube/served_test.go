package kube

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNotServedIsNotNotFound(t *testing.T) {
	kind := schema.GroupResource{Group: "fleet.cattle.io", Resource: "bundledeployments"}
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", kind, "", "404 page not found", 0, true)
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"no error", nil, false},
		{"no such object", apierrors.NewNotFound(kind, "web"), false},
		{"no such namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web"), false},
		{"nothing is served at the path of the kind", unserved, true},
		{"the same error, wrapped", fmt.Errorf("listing: %w", unserved), true},
		{"discovery does not know the kind", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: kind.Group, Kind: "BundleDeployment"}},
			true},
		{"forbidden", apierrors.NewForbidden(kind, "web", errors.New("no rights")), false},
		{"a definition that is being deleted lets nothing be created", apierrors.NewMethodNotSupported(kind, "create"), false},
	} {
		if got := NotServed(c.err); got != c.want {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
