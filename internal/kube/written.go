package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Written remembers the resource version of what a controller last wrote of each object. Until the cache has it, a reconcile would
// only collide with the controller's own write; the cache's event wakes it again.
type Written struct{ versions sync.Map }

// Store remembers the object as the server answered it.
func (w *Written) Store(o client.Object) { w.versions.Store(o.GetUID(), o.GetResourceVersion()) }

// Forget drops an object that is gone.
func (w *Written) Forget(o client.Object) { w.versions.Delete(o.GetUID()) }

// Stale says whether the object, as the cache has it, is behind what was last written.
func (w *Written) Stale(o client.Object) bool {
	last, known := w.versions.Load(o.GetUID())
	if !known {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), last.(string))
	return err == nil && order < 0
}
