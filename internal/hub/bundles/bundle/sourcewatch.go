package bundle

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// sourceWatch watches the Secrets and ConfigMaps of users, from the first Bundle with
// downstreamResources on. It keeps their names only.
type sourceWatch struct {
	bundles client.Reader
	cache   cache.Cache
	// events receives the Bundles with a changed object.
	events chan event.GenericEvent
	// changed holds these Bundles until they are read.
	changed kube.Memory[types.NamespacedName, bool]

	mu      sync.Mutex
	watched bool
}

func newSourceWatch(mgr ctrl.Manager, bundles client.Reader) (*sourceWatch, error) {
	onlyNames := cache.ByObject{Transform: controller.OnlyIdentity}
	objects, err := controller.NewLazyCache(mgr, "downstream resources", map[client.Object]cache.ByObject{
		kube.CoreMetadata(kindSecret): onlyNames, kube.CoreMetadata(kindConfigMap): onlyNames,
	})
	return &sourceWatch{bundles: bundles, cache: objects, events: make(chan event.GenericEvent, workers)}, err
}

// watch starts the watches, once.
func (w *sourceWatch) watch(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched {
		return nil
	}
	for _, kind := range []string{kindSecret, kindConfigMap} {
		informer, err := w.cache.GetInformer(ctx, kube.CoreMetadata(kind), cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching objects of kind %s for downstreamResources: %w", kind, err)
		}
		notify := func(o any) { w.notify(kind, o) }
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: notify, UpdateFunc: func(_, after any) { notify(after) }, DeleteFunc: notify,
		}); err != nil {
			return fmt.Errorf("watching objects of kind %s for downstreamResources: %w", kind, err)
		}
	}
	w.watched = true
	return nil
}

// notify enqueues the Bundles with a copy of an object.
func (w *sourceWatch) notify(kind string, object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	o, ok := object.(client.Object)
	if !ok {
		return
	}
	var list fleet.BundleList
	if err := w.bundles.List(context.Background(), &list, client.UnsafeDisableDeepCopy,
		client.MatchingFields{indexSource: sourceKey(kind, o.GetNamespace(), o.GetName())}); err != nil {
		ctrl.Log.Error(err, "Failed to list the Bundles that copy an object", "kind", kind, "namespace", o.GetNamespace(), "name", o.GetName())
		return
	}
	for i := range list.Items {
		w.note(client.ObjectKeyFromObject(&list.Items[i]))
		w.events <- event.GenericEvent{Object: &list.Items[i]}
	}
}

// note makes the next reconcile of a Bundle read its objects again.
func (w *sourceWatch) note(bundle types.NamespacedName) { w.changed.Set(bundle, true) }

// take reports whether an object of a Bundle has changed since the last call.
func (w *sourceWatch) take(bundle types.NamespacedName) bool {
	changed, _ := w.changed.Take(bundle)
	return changed
}
