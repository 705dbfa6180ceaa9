package local

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
