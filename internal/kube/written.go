package kube

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxCacheLag is how long a cache may lag behind a write. After that the write is taken for lost: an API server that was restored from an
// older snapshot has lower resource versions, which a cache never catches up with.
const maxCacheLag = 30 * time.Second

// Written remembers the resource version of what a controller last wrote of each object. Until the cache has it, a reconcile would
// only collide with the controller's own write; the cache's event wakes it again. A version is remembered until the cache shows it, and for
// maxCacheLag at most, also of an object that is gone.
type Written struct {
	Clock clock.PassiveClock

	mu     sync.Mutex
	writes map[types.UID]write
	// swept is when writes that nobody asked for again were last dropped.
	swept time.Time
}

// write is one version, and until when it is believed.
type write struct {
	version string
	expires time.Time
}

// Store remembers the object as the server answered it.
func (w *Written) Store(o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Clock.Now()
	if w.writes == nil {
		w.writes = map[types.UID]write{}
	}
	if now.Sub(w.swept) >= maxCacheLag {
		for uid, write := range w.writes {
			if !now.Before(write.expires) {
				delete(w.writes, uid)
			}
		}
		w.swept = now
	}
	w.writes[o.GetUID()] = write{version: o.GetResourceVersion(), expires: now.Add(maxCacheLag)}
}

// Await returns how long to wait at most for the cache to show what was last written of the object, which is as the cache has it; zero if
// the cache does.
func (w *Written) Await(o client.Object) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, known := w.writes[o.GetUID()]
	if !known {
		return 0
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), last.version)
	left := last.expires.Sub(w.Clock.Now())
	if err != nil || order >= 0 || left <= 0 {
		delete(w.writes, o.GetUID())
		return 0
	}
	return left
}
