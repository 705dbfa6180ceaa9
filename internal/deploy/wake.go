package deploy

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/deploy/live"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// arriving is in the queue, where names of deployments are, for looking again what kinds there are.
const arriving = "/kinds"

// glance is the least time between two looks at all that is left of a release, as long as it keeps going.
const glance = time.Second

// awaited is what deployments wait for besides their time, by their names.
type awaited struct {
	mu sync.Mutex
	// release is the name of a release that is somebody else's, kind says that a kind is not served.
	release map[string]string
	kind    map[string]bool
	// woken are those whose wait is over, lost those whose history was deleted by somebody.
	woken, lost map[string]bool
}

func (a *awaited) init() {
	a.release, a.kind, a.woken, a.lost = map[string]string{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
}

// failed notes what a deployment that failed waits for.
func (a *awaited) failed(name, releaseName string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.release, name)
	delete(a.kind, name)
	switch {
	case release.IsForeign(err):
		a.release[name] = releaseName
	case isNoMatch(err):
		a.kind[name] = true
	}
}

// isNoMatch says whether an error is that a kind is not served. Helm keeps only the words of it.
func isNoMatch(err error) bool {
	return meta.IsNoMatchError(err) || strings.Contains(err.Error(), "no matches for kind")
}

// take says whether a deployment was woken, and whether its history was deleted, since it was asked last.
func (a *awaited) take(name string) (woken, lost bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	woken, lost = a.woken[name], a.lost[name]
	delete(a.woken, name)
	delete(a.lost, name)
	return woken, lost
}

// wake has a deployment looked at soon, whatever it waits for.
func (d *Deployer) wake(name string, after time.Duration) {
	d.awaited.mu.Lock()
	d.awaited.woken[name] = true
	d.awaited.mu.Unlock()
	d.queue.AddAfter(name, after)
}

// changed is told of objects downstream.
func (d *Deployer) changed(key live.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if key.Name != "" {
		for name := range d.owners[key] {
			if of := d.deliveries[name]; of != nil && !of.leaving.IsZero() {
				d.wake(name, glance)
				continue
			}
			d.queue.AddAfter(name, settle)
		}
		return
	}
	for name, of := range d.deliveries {
		if of.set != nil {
			d.queue.Add(name)
		}
	}
}

// freed wakes those who wait for the name of a release.
func (d *Deployer) freed(releaseName string) {
	d.awaited.mu.Lock()
	var names []string
	for name, of := range d.awaited.release {
		if of == releaseName {
			names = append(names, name)
			delete(d.awaited.release, name)
		}
	}
	d.awaited.mu.Unlock()
	for _, name := range names {
		d.wake(name, settle)
	}
}

// awaitKind notes that a deployment waits for a kind to be served.
func (d *Deployer) awaitKind(name string) {
	d.awaited.mu.Lock()
	defer d.awaited.mu.Unlock()
	d.awaited.kind[name] = true
}

// defined is told of a CustomResourceDefinition that came or changed.
func (d *Deployer) defined() {
	d.awaited.mu.Lock()
	defer d.awaited.mu.Unlock()
	if len(d.awaited.kind) > 0 {
		d.queue.AddAfter(arriving, settle)
	}
}

// arrived has all who wait for a kind look again whether it is served.
func (d *Deployer) arrived() {
	d.awaited.mu.Lock()
	names := make([]string, 0, len(d.awaited.kind))
	for name := range d.awaited.kind {
		names = append(names, name)
	}
	clear(d.awaited.kind)
	d.awaited.mu.Unlock()
	if len(names) > 0 {
		d.Cluster.Mapper.Reset()
	}
	for _, name := range names {
		d.wake(name, settle)
	}
}

// unwritten is told of a revision in the history of a release that was deleted, by this program or by somebody else.
func (d *Deployer) unwritten(secret, releaseName string) {
	d.clearProblem(problemOf(secret))
	d.mu.Lock()
	var names []string
	for name, of := range d.deliveries {
		if of.release != nil && release.SecretName(*of.release) == secret {
			names = append(names, name)
		}
	}
	d.mu.Unlock()
	for _, name := range names {
		d.awaited.mu.Lock()
		d.awaited.lost[name] = true
		d.awaited.mu.Unlock()
		d.wake(name, settle)
	}
	if releaseName != "" {
		d.freed(releaseName)
	}
}

// followCluster watches what deployments may wait for: definitions of kinds, and histories of releases.
func (d *Deployer) followCluster(ctx context.Context) {
	var following sync.WaitGroup
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	following.Go(func() {
		d.followMetadata(ctx, crds, "", "", &noticed{changed: func(*metav1.PartialObjectMetadata) { d.defined() }})
	})
	following.Go(func() {
		d.followMetadata(ctx, corev1.SchemeGroupVersion.WithResource("secrets"), d.Cluster.AgentNamespace, release.OwnedByHelm,
			&noticed{gone: func(secret *metav1.PartialObjectMetadata) { d.unwritten(secret.Name, secret.Labels["name"]) }})
	})
	following.Wait()
}

func (d *Deployer) followMetadata(ctx context.Context, resource schema.GroupVersionResource, namespace, labels string, store *noticed) {
	objects := d.Cluster.Metadata.Resource(resource).Namespace(namespace)
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = labels
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = labels
			return objects.Watch(ctx, options)
		},
	}
	// What cannot be watched costs a wait until the next look, no more.
	silent, again := logr.Discard(), retry.Watch()
	reflector := cache.NewReflectorWithOptions(listWatch, &metav1.PartialObjectMetadata{}, store, cache.ReflectorOptions{
		Logger: &silent, Name: resource.String(), Backoff: &again,
	})
	reflector.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// noticed tells what came or changed, and what went, and keeps the names of what is there.
type noticed struct {
	changed, gone func(*metav1.PartialObjectMetadata)
	there         map[string]*metav1.PartialObjectMetadata
}

// Add implements cache.ReflectorStore.
func (n *noticed) Add(obj any) error { return n.Update(obj) }

// Update implements cache.ReflectorStore.
func (n *noticed) Update(obj any) error {
	object := obj.(*metav1.PartialObjectMetadata)
	if n.gone != nil {
		n.there[object.Name] = object
	}
	if n.changed != nil {
		n.changed(object)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (n *noticed) Delete(obj any) error {
	object := obj.(*metav1.PartialObjectMetadata)
	delete(n.there, object.Name)
	if n.gone != nil {
		n.gone(object)
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (n *noticed) Replace(list []any, _ string) error {
	before := n.there
	n.there = make(map[string]*metav1.PartialObjectMetadata, len(list))
	for _, obj := range list {
		object := obj.(*metav1.PartialObjectMetadata)
		delete(before, object.Name)
		_ = n.Update(object) // it returns no error
	}
	for _, object := range before {
		n.gone(object)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (*noticed) Resync() error { return nil }

// Transformer implements cache.TransformingStore: of all metadata only names and labels are kept.
func (*noticed) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if object, ok := obj.(*metav1.PartialObjectMetadata); ok {
			object.ManagedFields, object.Annotations = nil, nil
		}
		return obj, nil
	}
}
