package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/muster-fleet/muster/internal/kubeclient"
)

// oldServer answers as an API server that cannot stream lists, and passes on all else.
type oldServer struct {
	next http.RoundTripper

	mu    sync.Mutex
	lists []url.Values
}

func (s *oldServer) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if query.Get("sendInitialEvents") == "true" {
		err := apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", field.ErrorList{
			field.Forbidden(field.NewPath("sendInitialEvents"), "it is forbidden unless the WatchList feature gate is enabled"),
		})
		err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		body, _ := json.Marshal(err.ErrStatus) // a status is JSON
		return &http.Response{
			StatusCode: http.StatusUnprocessableEntity, Status: "422", Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewReader(body)), Request: request,
		}, nil
	}
	if query.Get("watch") == "" && request.Method == http.MethodGet {
		s.mu.Lock()
		s.lists = append(s.lists, query)
		s.mu.Unlock()
	}
	return s.next.RoundTrip(request)
}

func TestListsOfAnOldAPIServerAreReadAndStrippedPageByPage(t *testing.T) {
	const number = 1100
	config := rest.CopyConfig(startCluster(t))
	config.QPS = -1
	admin, err := kubeclient.Connect(config)
	check(t, err)
	hub := newTestHub(t, config)
	namespace := makeNamespace(t, hub.kube, "pages-")
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	objects, err := kubeclient.Of[corev1.ConfigMap, corev1.ConfigMapList](admin, resource, namespace)
	check(t, err)
	create := func(name string) {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"large": "text"}}
		if _, err := objects.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}
	var creating sync.WaitGroup
	for worker := range 10 {
		creating.Go(func() {
			for i := worker; i < number; i += 10 {
				create(fmt.Sprintf("a-%04d", i))
			}
		})
	}
	creating.Wait()

	server := &oldServer{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { server.next = next; return server })
	connection, err := kubeclient.Connect(config)
	check(t, err)
	followed, err := kubeclient.Of[corev1.ConfigMap, corev1.ConfigMapList](connection, resource, namespace)
	check(t, err)
	changed, names, whole := make(chan struct{}, 1), map[string]bool{}, 0
	store := &kubeclient.Store[*corev1.ConfigMap]{
		Changed: changed, Drop: func(*corev1.ConfigMap) {}, Reset: func() { clear(names) },
		Put: func(c *corev1.ConfigMap) bool {
			names[c.Name] = true
			if c.Data != nil {
				whole++
			}
			return true
		},
		InPages: true, Strip: func(c *corev1.ConfigMap) *corev1.ConfigMap {
			kept := metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name, ResourceVersion: c.ResourceVersion}
			return &corev1.ConfigMap{ObjectMeta: kept}
		},
	}
	var following sync.WaitGroup
	ctx := t.Context()
	following.Go(func() { kubeclient.Follow(ctx, followed, "", store, func(error) {}) })
	t.Cleanup(following.Wait)
	<-changed
	store.Lock()
	got, unstripped := len(names), whole
	store.Unlock()
	if got < number || unstripped > 0 {
		t.Errorf("%d of %d were listed, %d of them whole", got, number, unstripped)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if len(server.lists) != 3 {
		t.Errorf("%d lists for %d objects", len(server.lists), number)
	}
	for _, query := range server.lists {
		if query.Get("limit") != "500" || query.Get("resourceVersion") == "0" {
			t.Errorf("a list asked for %v", query)
		}
	}
}
