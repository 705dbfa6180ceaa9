package selection

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// watched are watches on a fake hub with one ConfigMap, and whose placements were woken.
func watched(t *testing.T) (*Watches, *fake.FakeDynamicClient, chan string) {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{configMaps: "ConfigMapList"})
	create(t, client, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n, managedFields: [{manager: x}]}}")
	woken := make(chan string, 100)
	watches := NewWatches(client, func(user types.NamespacedName) { woken <- user.Name })
	watches.Start(t.Context())
	return watches, client, woken
}

// count is how many watches run.
func count(w *Watches) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watches)
}

func create(t *testing.T, client *fake.FakeDynamicClient, text string) {
	t.Helper()
	if _, err := client.Resource(configMaps).Namespace("n").Create(t.Context(), object(t, text), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, woken chan string, want string) {
	t.Helper()
	for {
		select {
		case got := <-woken:
			if got == want {
				return
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not woken by a change", want)
		}
	}
}

func TestWatchesAreSharedAndEndWithTheirLastUser(t *testing.T) {
	watches, client, woken := watched(t)
	here, all := Query{Resource: configMaps, Namespace: "n"}, Query{Resource: configMaps}
	one, two := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}
	watches.Use(one, map[Query]bool{here: true})
	await(t, woken, "one")
	watches.Use(two, map[Query]bool{here: true, all: true})
	await(t, woken, "two")
	if got := count(watches); got != 2 {
		t.Errorf("%d watches run, want 2", got)
	}
	objects, known, failure := watches.Objects(here)
	if len(objects) != 1 || !known || failure != nil || objects[0].GetManagedFields() != nil {
		t.Errorf("the answer is %v, known %t, %v", objects, known, failure)
	}
	create(t, client, "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: n}}")
	await(t, woken, "one")
	if objects, _, _ := watches.Objects(here); len(objects) != 2 {
		t.Errorf("the answer has %d objects, want 2", len(objects))
	}
	watches.Use(two, nil)
	if got := count(watches); got != 1 {
		t.Errorf("%d watches run, want 1", got)
	}
	watches.Use(one, nil)
	if _, known, _ := watches.Objects(here); known || count(watches) != 0 {
		t.Error("a watch that nobody uses runs")
	}
}

func TestARefusalIsReportedAndNotTakenForAbsence(t *testing.T) {
	watches, client, woken := watched(t)
	client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(configMaps.GroupResource(), "", errors.New("no right"))
	})
	r := &resolver{Selector: &Selector{Watches: watches}, queries: map[Query]bool{}}
	query := Query{Resource: configMaps, Namespace: "n"}
	if _, _, err := r.read(0, query); err != nil || !r.Waiting {
		t.Errorf("before it is listed: %v, waiting %t", err, r.Waiting)
	}
	watches.Use(types.NamespacedName{Name: "one"}, r.queries)
	await(t, woken, "one")
	if _, _, err := r.read(0, query); err == nil ||
		!strings.HasPrefix(err.Error(), "spec.resourceSelectors[0]: the hub may not read configmaps in namespace n") {
		t.Errorf("the problem is %v", err)
	}
}

func TestWhatMayNotBeReadIsLeftOutAndNothingIsSaidOfIt(t *testing.T) {
	watches, _, woken := watched(t)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	s := &Selector{Watches: watches, Mapper: mapper, IsWorkspace: func(string) bool { return false }}
	user := types.NamespacedName{Namespace: "n", Name: "one"}
	selectors := []placement.ResourceSelector{
		{Version: "v1", Kind: "ConfigMap", Name: "a"}, {Version: "v1", Kind: "ConfigMap", Name: "none"}, {
			Version: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{},
		},
	}
	named := func(q Query) (bool, error) { return q.Name == "a", nil }
	for {
		got, err := s.Select(user, named, selectors)
		if err != nil {
			t.Fatal(err)
		}
		if got.Waiting {
			await(t, woken, "one")
			continue
		}
		want := []Query{{Resource: configMaps, Namespace: "n", Name: "none"}, {Resource: configMaps, Namespace: "n"}}
		if len(got.Objects) != 1 || len(got.Missing) > 0 || !slices.Equal(got.Withheld, want) || count(watches) != 1 {
			t.Errorf("it selects %+v, and %d watches run", got, count(watches))
		}
		break
	}
	busy := errors.New("the server is busy")
	if _, err := s.Select(user, func(Query) (bool, error) { return false, busy }, selectors); !errors.Is(err, busy) || count(watches) != 1 {
		t.Errorf("what cannot be asked is %v, and %d watches run", err, count(watches))
	}
}
