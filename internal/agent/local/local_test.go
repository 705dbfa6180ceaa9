package local

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func TestTheIDOfAClusterIsKnownAlsoWhenItsAPIServerIsDown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "uid-of-kube-system"},
		})
	}))
	defer server.Close()
	cluster, err := New(&rest.Config{Host: server.URL}, "default")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if id, err := cluster.ID(t.Context()); err != nil || id != "uid-of-kube-system" {
			t.Errorf("the ID is %q: %v", id, err)
		}
		server.Close()
	}
}

func TestWhatKeepsTheAgentFromListingAppliedWorksIsSaidAsTheAPIServerSaysIt(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status := apierrors.NewForbidden(schema.GroupResource{Group: "placement.kubernetes-fleet.io", Resource: "appliedworks"},
			"", errors.New("User cannot list")).Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(status)
	}))
	defer server.Close()
	cluster, err := New(&rest.Config{Host: server.URL}, "default")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.HasApplied(t.Context(), "fleet-member-edge"); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "User cannot list") {
		t.Errorf("it is said as %v", err)
	}
}
