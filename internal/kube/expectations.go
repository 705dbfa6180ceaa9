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

// maxCacheLag bounds the lag of a cache behind a write. The write then counts as lost: a restored
// API server has lower resource versions, and a cache never catches up with the write.
const maxCacheLag = 30 * time.Second

// Expectations are writes of a controller missing in its cache so far. Until then a reconcile would
// only collide with the controller's own writes, or repeat them. The event of the cache enqueues
// the object again. An expectation ends at its deadline.
type Expectations struct {
	Clock clock.PassiveClock
	// Timeout bounds the wait for a write; defaults to maxCacheLag. It is short if another client may
	// delete the object before the cache shows it.
	Timeout time.Duration
	// Whole keeps whole objects for Pending, instead of only names and versions.
	Whole bool

	mu sync.Mutex
	// writes holds the written objects by the reconciled key, and by their own name.
	writes map[types.NamespacedName]map[types.NamespacedName]expectation
	// swept is the time of the last removal of expired writes of all keys.
	swept time.Time
}

type expectation struct {
	object   client.Object
	deadline time.Time
}

// Expect stores the server's answer to a write for a key. Objects of one key have different names.
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
		written = &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, ResourceVersion: written.GetResourceVersion()},
		}
	}
	e.writes[key][name] = expectation{written, now.Add(timeout)}
}

// Await returns the longest wait for the cache to show all writes for a key; zero if it does
// already. cached are the objects of the key in the cache.
func (e *Expectations) Await(key types.NamespacedName, cached ...client.Object) time.Duration {
	_, wait := e.Pending(key, cached...)
	return wait
}

// Pending returns one of the written objects missing in the cache, and the longest wait for all of
// them.
func (e *Expectations) Pending(key types.NamespacedName, cached ...client.Object) (last client.Object, wait time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	pending := e.writes[key]
	for _, object := range cached {
		name := client.ObjectKeyFromObject(object)
		if x, expected := pending[name]; expected {
			if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), x.object.GetResourceVersion()); err != nil ||
				order >= 0 {
				delete(pending, name)
			}
		}
	}
	for name, x := range pending {
		left := x.deadline.Sub(e.Clock.Now())
		if left <= 0 {
			delete(pending, name)
		} else if left > wait {
			last, wait = x.object, left
		}
	}
	if len(pending) == 0 {
		delete(e.writes, key)
	}
	return last, wait
}

// Forget drops the writes for a key after its object is gone.
func (e *Expectations) Forget(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.writes, key)
}
