package bundle

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/restore"
)

// newKinds is the name in the queue for all deployments waiting for a kind.
const newKinds = "/kinds"

// discoveryLag bounds the time of a busy API server to serve a kind after a change of its
// definition. againForKinds is the interval of attempts meanwhile.
const discoveryLag, againForKinds = 15 * time.Second, 2 * time.Second

// removalDebounce is the least time between two attempts to remove the rest of a release.
const removalDebounce = time.Second

// wakeups are the awaited events, by name of the deployment.
type wakeups struct {
	mu sync.Mutex
	// release is another owner's release; kind is set if a kind is not served.
	release map[string]release.ID
	kind    map[string]bool
	// kindsChanged is the time of the last change of a CustomResourceDefinition.
	kindsChanged time.Time
	// wokenUp are deployments after their event, lost the deployments with a deleted history.
	wokenUp, lost map[string]bool
}

func (a *wakeups) init() {
	a.release, a.kind, a.wokenUp, a.lost = map[string]release.ID{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
}

// failed sets the event to wait for after a failed deployment.
func (a *wakeups) failed(name string, id release.ID, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.release, name)
	delete(a.kind, name)
	switch {
	case release.IsForeign(err):
		a.release[name] = id
	case isNotServed(err), release.IsUnknownField(err):
		a.kind[name] = true
	}
}

// isNotServed reports whether an error means an unserved kind. Helm keeps only the text.
func isNotServed(err error) bool {
	return meta.IsNoMatchError(err) || strings.Contains(err.Error(), "no matches for kind")
}

// take reports whether an event of a deployment came and whether its history was deleted, and
// forgets both.
func (a *wakeups) take(name string) (wokenUp, lost bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	wokenUp, lost = a.wokenUp[name], a.lost[name]
	delete(a.wokenUp, name)
	delete(a.lost, name)
	return wokenUp, lost
}

// wake enqueues a deployment, regardless of its event.
func (d *Deployer) wake(name string, after time.Duration) {
	d.wakeups.mu.Lock()
	d.wakeups.wokenUp[name] = true
	d.wakeups.mu.Unlock()
	d.queue.AddAfter(name, after)
}

// changed enqueues the deployments with a changed object.
func (d *Deployer) changed(object applied.Query) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.owners[object] {
		if of := d.deliveries[name]; of != nil && !of.removingSince.IsZero() {
			d.wake(name, removalDebounce)
			continue
		}
		d.queue.AddAfter(name, debounce)
	}
}

// listed enqueues deployments after the first list of their kind.
func (d *Deployer) listed(names []string) {
	for _, name := range names {
		d.queue.Add(name)
	}
}

// wakeForRelease enqueues the deployments waiting for another owner's release.
func (d *Deployer) wakeForRelease(id release.ID) {
	d.wakeups.mu.Lock()
	var names []string
	for name, of := range d.wakeups.release {
		if of == id {
			names = append(names, name)
			delete(d.wakeups.release, name)
		}
	}
	d.wakeups.mu.Unlock()
	for _, name := range names {
		d.wake(name, debounce)
	}
}

// waitForKind makes a deployment wait for a kind to be served.
func (d *Deployer) waitForKind(name string) {
	d.wakeups.mu.Lock()
	defer d.wakeups.mu.Unlock()
	d.wakeups.kind[name] = true
}

// crdChanged enqueues newKinds, if deployments wait for a kind.
func (d *Deployer) crdChanged() {
	d.wakeups.mu.Lock()
	defer d.wakeups.mu.Unlock()
	if len(d.wakeups.kind) > 0 {
		d.wakeups.kindsChanged = d.Clock.Now()
		d.queue.AddAfter(newKinds, debounce)
	}
}

// wakeForKinds enqueues the deployments waiting for a kind.
func (d *Deployer) wakeForKinds() {
	d.wakeups.mu.Lock()
	names := slices.Collect(maps.Keys(d.wakeups.kind))
	clear(d.wakeups.kind)
	recent := d.Clock.Since(d.wakeups.kindsChanged) < discoveryLag
	d.wakeups.mu.Unlock()
	if recent {
		d.queue.AddAfter(newKinds, againForKinds)
	}
	if len(names) > 0 {
		d.Cluster.Mapper.Reset()
	}
	for _, name := range names {
		d.wake(name, debounce)
	}
}

// historyDeleted wakes the deployments of a deleted revision.
func (d *Deployer) historyDeleted(obj any) {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	secret, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	d.clearProblem(problemOf(secret.Namespace + "/" + secret.Name))
	d.mu.Lock()
	var names []string
	for name, of := range d.deliveries {
		if of.keptIn(secret.Namespace, secret.Name) {
			names = append(names, name)
		}
	}
	d.mu.Unlock()
	for _, name := range names {
		d.wakeups.mu.Lock()
		d.wakeups.lost[name] = true
		d.wakeups.mu.Unlock()
		d.wake(name, debounce)
	}
	d.wakeForRelease(release.ID{Namespace: secret.Namespace, Name: secret.Labels["name"]})
}

// followCluster watches CustomResourceDefinitions and histories of releases.
func (d *Deployer) followCluster(ctx context.Context) {
	var watching sync.WaitGroup
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	watching.Go(func() {
		d.followMetadata(ctx, crds, "", d.definitionEvents())
	})
	watching.Go(func() {
		secrets := corev1.SchemeGroupVersion.WithResource("secrets")
		d.followMetadata(ctx, secrets, release.OwnedByHelm, cache.ResourceEventHandlerFuncs{DeleteFunc: d.historyDeleted})
	})
	watching.Wait()
}

// followMetadata watches the metadata of a resource until ctx ends. While the watch fails,
// deployments wait for another reason to be reconciled.
func (d *Deployer) followMetadata(ctx context.Context, resource schema.GroupVersionResource, labels string,
	handler cache.ResourceEventHandler) {
	listWatch := restore.ListWatch(d.Cluster.Metadata.Resource(resource), func(options *metav1.ListOptions) { options.LabelSelector = labels })
	informer := restore.NewInformer(listWatch, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
	_ = informer.SetTransform(func(obj any) (any, error) { // fails only after the start, as the other two do
		if object, ok := obj.(*metav1.PartialObjectMetadata); ok {
			object.ManagedFields, object.Annotations = nil, nil
		}
		return obj, nil
	})
	_ = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
	_, _ = informer.AddEventHandler(handler)
	informer.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}
