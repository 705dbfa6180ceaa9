package selection

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// watched are watches on a fake hub with one ConfigMap, and who was told of changes.
func watched(t *testing.T) (*Watches, *fake.FakeDynamicClient, chan string) {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{configMaps: "ConfigMapList"})
	create(t, client, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n, managedFields: [{manager: x}]}}")
	told := make(chan string, 100)
	watches := NewWatches(client, func(user types.NamespacedName) { told <- user.Name })
	watches.Start(t.Context())
	return watches, client, told
}

func create(t *testing.T, client *fake.FakeDynamicClient, text string) {
	t.Helper()
	if _, err := client.Resource(configMaps).Namespace("n").Create(t.Context(), object(t, text), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, told chan string, want string) {
	t.Helper()
	for {
		select {
		case got := <-told:
			if got == want {
				return
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not told of a change", want)
		}
	}
}

func TestWatchesAreSharedAndEndWithTheirLastUser(t *testing.T) {
	watches, client, told := watched(t)
	here, all := Query{Resource: configMaps, Namespace: "n"}, Query{Resource: configMaps}
	one, two := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}
	watches.Use(one, map[Query]bool{here: true})
	await(t, told, "one")
	watches.Use(two, map[Query]bool{here: true, all: true})
	await(t, told, "two")
	if got := watches.Count(); got != 2 {
		t.Errorf("%d watches run, want 2", got)
	}
	objects, known, failure := watches.Answer(here)
	if len(objects) != 1 || !known || failure != nil || objects[0].GetManagedFields() != nil {
		t.Errorf("the answer is %v, known %t, %v", objects, known, failure)
	}
	create(t, client, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: n}}")
	await(t, told, "one")
	if objects, _, _ := watches.Answer(here); len(objects) != 2 {
		t.Errorf("the answer has %d objects, want 2", len(objects))
	}
	watches.Use(two, nil)
	if got := watches.Count(); got != 1 {
		t.Errorf("%d watches run, want 1", got)
	}
	watches.Use(one, nil)
	if _, known, _ := watches.Answer(here); known || watches.Count() != 0 {
		t.Error("a watch that nobody uses runs")
	}
}

func TestARefusalIsToldAndNotTakenForAbsence(t *testing.T) {
	watches, client, told := watched(t)
	client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(configMaps.GroupResource(), "", errors.New("no right"))
	})
	r := &run{Selector: &Selector{Watches: watches}, queries: map[Query]bool{}}
	query := Query{Resource: configMaps, Namespace: "n"}
	if _, problem := r.ask(query, "selector"); problem != "" || !r.waiting {
		t.Errorf("before it is asked: %q, waiting %t", problem, r.waiting)
	}
	watches.Use(types.NamespacedName{Name: "one"}, r.queries)
	await(t, told, "one")
	if _, problem := r.ask(query, "selector"); !strings.HasPrefix(problem, "selector: the hub may not read configmaps in namespace n") {
		t.Errorf("the problem is %q", problem)
	}
}
