package live

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/restore"
)

// Watcher watches the kinds that were deployed, and of these the objects that carry the label of a delivery.
type Watcher struct {
	cluster *release.Cluster
	// changed is told of an object whose record changed, and of the zero Name when a kind has been listed.
	changed func(Key)

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*kind
	ended sync.WaitGroup
}

// NewWatcher makes a watcher of nothing; changed must not block.
func NewWatcher(cluster *release.Cluster, changed func(Key)) *Watcher {
	return &Watcher{cluster: cluster, changed: changed, kinds: map[schema.GroupVersionKind]*kind{}}
}

// Watch makes the kinds the only ones that are watched, until ctx ends. One that the server does not know is left out.
func (w *Watcher) Watch(ctx context.Context, kinds map[schema.GroupVersionKind]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for gvk, watched := range w.kinds {
		if !kinds[gvk] {
			watched.stop()
			delete(w.kinds, gvk)
		}
	}
	for gvk := range kinds {
		if w.kinds[gvk] != nil {
			continue
		}
		mapping, err := w.cluster.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			logr.FromContextOrDiscard(ctx).Info("watching a kind failing", "kind", gvk.String(), "reason", err.Error())
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		k := &kind{gvk: gvk, changed: w.changed, stop: stop, records: map[cache.ObjectName]record{}}
		w.kinds[gvk] = k
		w.ended.Go(func() { w.follow(ctx, mapping.Resource, k) })
	}
}

// Wait returns when all watches have ended.
func (w *Watcher) Wait() { w.ended.Wait() }

func (w *Watcher) follow(ctx context.Context, resource schema.GroupVersionResource, k *kind) {
	objects := w.cluster.Dynamic.Resource(resource)
	ours := func(options metav1.ListOptions) metav1.ListOptions {
		options.LabelSelector = release.LabelSet
		return options
	}
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := objects.List(ctx, ours(options))
			if apierrors.IsNotFound(err) {
				// The kind itself was deleted, and with it its objects.
				err = k.Replace(nil, "")
				return &unstructured.UnstructuredList{}, err
			}
			k.tried(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, ours(options))
		},
	}
	silent, again := logr.Discard(), retry.Watch()
	reflector := cache.NewReflectorWithOptions(restore.Survive(listWatch), &unstructured.Unstructured{}, k, cache.ReflectorOptions{
		Logger: &silent, Name: k.gvk.String(), Backoff: &again,
	})
	reflector.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// trouble is why a kind is not watched yet.
func (w *Watcher) trouble(gvk schema.GroupVersionKind) string {
	w.mu.Lock()
	k := w.kinds[gvk]
	w.mu.Unlock()
	if k == nil {
		return fmt.Sprintf("the API server does not serve %s of %s", gvk.Kind, gvk.GroupVersion())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure != nil {
		return fmt.Sprintf("listing %s of %s: %v", gvk.Kind, gvk.GroupVersion(), k.failure)
	}
	return fmt.Sprintf("listing %s of %s", gvk.Kind, gvk.GroupVersion())
}

// get is the record of an object; synced is false as long as its kind has not been listed.
func (w *Watcher) get(key Key) (r record, found, synced bool) {
	w.mu.Lock()
	k := w.kinds[key.Kind]
	w.mu.Unlock()
	if k == nil {
		return record{}, false, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r, found = k.records[cache.ObjectName{Namespace: key.Namespace, Name: key.Name}]
	return r, found, k.synced
}

// kind is the store that one watch keeps up to date.
type kind struct {
	gvk     schema.GroupVersionKind
	changed func(Key)
	stop    context.CancelFunc

	mu      sync.Mutex
	synced  bool
	failure error
	records map[cache.ObjectName]record
}

// tried remembers why the kind cannot be listed.
func (k *kind) tried(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failure = err
}

// shrunk is what is left of an object until it is stored.
type shrunk struct {
	metav1.ObjectMeta
	record record
}

// Transformer implements cache.TransformingStore: whole objects are dropped one by one while a list is read.
func (k *kind) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		object, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		return &shrunk{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: object.GetNamespace(), Name: object.GetName(), ResourceVersion: object.GetResourceVersion(), UID: object.GetUID(),
			},
			record: recordOf(object),
		}, nil
	}
}

func (k *kind) key(name cache.ObjectName) Key {
	return Key{Kind: k.gvk, Namespace: name.Namespace, Name: name.Name}
}

// Add implements cache.ReflectorStore.
func (k *kind) Add(obj any) error { return k.Update(obj) }

// Update implements cache.ReflectorStore.
func (k *kind) Update(obj any) error {
	object := shrink(obj)
	name := cache.MetaObjectToName(object)
	k.mu.Lock()
	old, known := k.records[name]
	k.records[name] = object.record
	k.mu.Unlock()
	if !known || !same(old, object.record) {
		k.changed(k.key(name))
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (k *kind) Delete(obj any) error {
	name := cache.MetaObjectToName(shrink(obj))
	k.mu.Lock()
	delete(k.records, name)
	k.mu.Unlock()
	k.changed(k.key(name))
	return nil
}

// Replace implements cache.ReflectorStore.
func (k *kind) Replace(list []any, _ string) error {
	fresh := make(map[cache.ObjectName]record, len(list))
	for _, obj := range list {
		object := shrink(obj)
		fresh[cache.MetaObjectToName(object)] = object.record
	}
	k.mu.Lock()
	k.records, k.synced = fresh, true
	k.mu.Unlock()
	k.changed(Key{Kind: k.gvk})
	return nil
}

// Resync implements cache.ReflectorStore.
func (k *kind) Resync() error { return nil }

// shrink is for deletions that come as they were.
func shrink(obj any) *shrunk {
	if small, ok := obj.(*shrunk); ok {
		return small
	}
	object := obj.(*unstructured.Unstructured)
	return &shrunk{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}, record: recordOf(object)}
}

func same(a, b record) bool {
	a.created, b.created = time.Time{}, time.Time{}
	return a == b
}

// Kinds are those that some objects are of.
func Kinds(of ...[]Key) map[schema.GroupVersionKind]bool {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, keys := range of {
		for _, key := range keys {
			kinds[key.Kind] = true
		}
	}
	return maps.Clone(kinds)
}
