package kube

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxCacheLag is how long a cache may lag behind a write. After that the write is taken for lost: an API server that was restored from an
// older snapshot has lower resource versions, which a cache never catches up with.
const maxCacheLag = 30 * time.Second

// Expectations are the writes of a controller that its cache does not show yet. Until the cache does, a reconcile would only collide with the
// controller's own writes, or repeat them; the cache's event wakes it again. A write is expected until its deadline at most.
type Expectations struct {
	Clock clock.PassiveClock
	// Timeout is how long a write is expected; zero means maxCacheLag. It is short where somebody else may delete what the cache never showed.
	Timeout time.Duration
	// Whole keeps the objects as they were written, for Pending. Otherwise only their names and versions are kept.
	Whole bool

	mu sync.Mutex
	// writes by the key that is reconciled, and by the name of the object that was written for it.
	writes map[types.NamespacedName]map[types.NamespacedName]expectation
	// swept is when expired writes of keys that nobody asks for any more were last dropped.
	swept time.Time
}

type expectation struct {
	object   client.Object
	deadline time.Time
}

// Expect remembers an object that was written for a key, as the server answered it. Objects of one key differ in their names.
func (e *Expectations) Expect(key types.NamespacedName, written client.Object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, timeout := e.Clock.Now(), e.Timeout
	if timeout == 0 {
		timeout = maxCacheLag
	}
	if now.Sub(e.swept) >= timeout {
		maps.DeleteFunc(e.writes, func(_ types.NamespacedName, of map[types.NamespacedName]expectation) bool {
			maps.DeleteFunc(of, func(_ types.NamespacedName, x expectation) bool { return !now.Before(x.deadline) })
			return len(of) == 0
		})
		e.swept = now
	}
	if e.writes == nil {
		e.writes = map[types.NamespacedName]map[types.NamespacedName]expectation{}
	}
	if e.writes[key] == nil {
		e.writes[key] = map[types.NamespacedName]expectation{}
	}
	name := client.ObjectKeyFromObject(written)
	if !e.Whole {
		written = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, ResourceVersion: written.GetResourceVersion()}}
	}
	e.writes[key][name] = expectation{written, now.Add(timeout)}
}

// Await returns how long to wait at most for the cache to show all that was written for a key; zero if it does. The cached objects are
// those of the key that the cache has.
func (e *Expectations) Await(key types.NamespacedName, cached ...client.Object) time.Duration {
	_, wait := e.Pending(key, cached...)
	return wait
}

// Pending returns one of the objects that were written for a key and that the cache does not show yet, and how long to wait for them at most.
func (e *Expectations) Pending(key types.NamespacedName, cached ...client.Object) (last client.Object, wait time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	of := e.writes[key]
	for _, object := range cached {
		name := client.ObjectKeyFromObject(object)
		if x, expected := of[name]; expected {
			if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), x.object.GetResourceVersion()); err != nil || order >= 0 {
				delete(of, name)
			}
		}
	}
	for name, x := range of {
		left := x.deadline.Sub(e.Clock.Now())
		if left <= 0 {
			delete(of, name)
		} else if left > wait {
			last, wait = x.object, left
		}
	}
	if len(of) == 0 {
		delete(e.writes, key)
	}
	return last, wait
}

// Forget drops what was written for a key, because its object is gone.
func (e *Expectations) Forget(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.writes, key)
}
