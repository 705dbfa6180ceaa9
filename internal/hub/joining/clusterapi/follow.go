package clusterapi

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/kube"
)

// definition is the name of the definition of Cluster API's clusters. A request of this name and
// without a namespace begins to follow them.
const definition = "clusters." + group

// servedAgain is the time between two checks for a kind whose definition exists.
const servedAgain = 5 * time.Second

// followed are the clusters of Cluster API, as far as the hub reads them.
type followed struct {
	cache cache.Cache
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu   sync.Mutex
	kind schema.GroupVersionKind
	// leaving is the queue of the leaver; early are the requests before it has started.
	leaving workqueue.TypedRateLimitingInterface[reconcile.Request]
	early   []reconcile.Request
}

// startLeaving takes the queue of the leaver.
func (f *followed) startLeaving(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaving = queue
	for _, request := range f.early {
		queue.Add(request)
	}
	f.early = nil
	return nil
}

func (f *followed) leave(request reconcile.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leaving == nil {
		f.early = append(f.early, request)
		return
	}
	f.leaving.Add(request)
}

// version returns the kind in the version of the API server; empty while the hub does not follow
// it.
func (f *followed) version() schema.GroupVersionKind {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kind
}

func (f *followed) setVersion(kind schema.GroupVersionKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kind = kind
}

// get returns a cluster of Cluster API from the cache. The hub must follow the kind.
func (f *followed) get(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	theirs := &unstructured.Unstructured{}
	theirs.SetGroupVersionKind(f.version())
	return theirs, f.cache.Get(ctx, key, theirs)
}

// start takes the queue of the controller. It enqueues the first request to follow.
func (f *followed) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	f.queue = queue
	queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: definition}})
	return nil
}

// follow begins to watch the clusters of Cluster API, once the settings have a rule for them and
// the hub cluster serves them. A later rule reconciles all of them again.
func (c *Controller) follow(ctx context.Context) (ctrl.Result, error) {
	if !c.followed.version().Empty() {
		return ctrl.Result{}, c.again(ctx)
	}
	if !c.Config.Current().ClusterAPI.Follows() {
		return ctrl.Result{}, nil
	}
	mapping, err := c.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: "Cluster"})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return c.awaitServed(ctx)
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("looking up the clusters of Cluster API: %w", err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	informer, err := c.followed.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("watching the clusters of Cluster API: %w", err)
	}
	c.followed.setVersion(mapping.GroupVersionKind)
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: c.followed.enqueue, UpdateFunc: func(_, after any) { c.followed.enqueue(after) },
	}); err != nil {
		return ctrl.Result{}, fmt.Errorf("watching the clusters of Cluster API: %w", err)
	}
	return ctrl.Result{}, nil
}

// enqueue adds the requests for a cluster of Cluster API.
func (f *followed) enqueue(o any) {
	of, ok := o.(metav1.Object)
	if !ok {
		return
	}
	key := types.NamespacedName{Namespace: of.GetNamespace(), Name: of.GetName()}
	if of.GetDeletionTimestamp() != nil {
		f.leave(reconcile.Request{NamespacedName: key})
	}
	key.Name += secretSuffix
	f.queue.Add(reconcile.Request{NamespacedName: key})
}

// awaitServed waits for a definition, whose event enqueues the request. An API server serves a kind
// a moment after its definition, without an event.
func (c *Controller) awaitServed(ctx context.Context) (ctrl.Result, error) {
	err := c.Client.Get(ctx, types.NamespacedName{Name: definition}, kube.Metadata(servedkinds.DefinitionKind))
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{RequeueAfter: servedAgain}, nil
}

// again enqueues the Secrets of all workspaces that register clusters of Cluster API, and the
// clusters of Cluster API that are being deleted.
func (c *Controller) again(ctx context.Context) error {
	every := &unstructured.UnstructuredList{}
	every.SetGroupVersionKind(c.followed.version())
	if err := c.followed.cache.List(ctx, every); err != nil {
		return fmt.Errorf("listing the clusters of Cluster API: %w", err)
	}
	for i := range every.Items {
		if every.Items[i].GetDeletionTimestamp() != nil {
			c.followed.enqueue(&every.Items[i])
		}
	}
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"})
	if err := c.cache.List(ctx, namespaces); err != nil {
		return fmt.Errorf("listing the workspaces with clusters of Cluster API: %w", err)
	}
	for i := range namespaces.Items {
		for _, request := range c.secretsIn(ctx, &namespaces.Items[i]) {
			c.followed.queue.Add(request)
		}
	}
	return nil
}

// carry copies the metadata of a cluster of Cluster API to its Cluster. The owner of the Cluster
// proves by UID that it belongs to that cluster.
func (c *Controller) carry(ctx context.Context, cluster *fleet.Cluster, name string) error {
	rule := c.Config.Current().ClusterAPI
	switch {
	case cluster.DeletionTimestamp != nil:
		return nil
	case !rule.Follows():
		return c.write(ctx, cluster, copied{})
	case c.followed.version().Empty():
		return nil
	}
	from, err := c.followed.get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: name})
	if err != nil {
		return client.IgnoreNotFound(err) // its own deletion removes the Cluster
	}
	if !ownedBy(cluster, from) || paused(from) || from.GetDeletionTimestamp() != nil {
		return nil
	}
	return c.write(ctx, cluster, wanted(rule, from))
}

// ownedBy reports whether a Cluster belongs to a cluster of Cluster API.
func ownedBy(cluster *fleet.Cluster, theirs *unstructured.Unstructured) bool {
	for _, owner := range cluster.OwnerReferences {
		if owner.UID == theirs.GetUID() && kube.IsOwner(owner, schema.GroupKind{Group: group, Kind: "Cluster"}) {
			return true
		}
	}
	return false
}

// paused reports whether the controllers of Cluster API leave a cluster alone.
func paused(theirs *unstructured.Unstructured) bool {
	_, annotated := theirs.GetAnnotations()[annotationPaused]
	field, _, _ := unstructured.NestedBool(theirs.Object, "spec", "paused")
	return annotated || field
}

// waits reports whether the cluster of Cluster API behind a kubeconfig is paused or being deleted.
// The hub then creates no Cluster for it. The cache may not have that cluster yet, and a Cluster is
// created once: the API server answers.
func (c *Controller) waits(ctx context.Context, secret *metav1.PartialObjectMetadata, name string) (bool, error) {
	owner := ownerOf(secret, name)
	if owner == nil || !c.Config.Current().ClusterAPI.Follows() {
		return false, nil
	}
	theirs := &unstructured.Unstructured{}
	theirs.SetAPIVersion(owner.APIVersion)
	theirs.SetKind(owner.Kind)
	err := c.Live.Get(ctx, types.NamespacedName{Namespace: secret.Namespace, Name: name}, theirs)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return false, nil // an earlier version of Cluster API, or a Secret that was restored first
	case err != nil:
		return false, fmt.Errorf("reading cluster %s/%s of Cluster API: %w", secret.Namespace, name, err)
	}
	return theirs.GetUID() == owner.UID && (paused(theirs) || theirs.GetDeletionTimestamp() != nil), nil
}

// write replaces the metadata copied to a Cluster before, if it differs.
func (c *Controller) write(ctx context.Context, cluster *fleet.Cluster, w copied) error {
	after := kube.Whole(cluster)
	if !carry(after, w) {
		return nil
	}
	// The lock protects concurrent edits by a user.
	patch := client.MergeFromWithOptions(kube.Whole(cluster), client.MergeFromWithOptimisticLock{})
	if err := c.Client.Patch(ctx, after, patch, kube.FieldOwner); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("copying metadata of Cluster API to Cluster %s/%s: %w", cluster.Namespace, cluster.Name, err))
	}
	ctrl.LoggerFrom(ctx).Info("Metadata copied from Cluster API", "cluster", cluster.Name)
	return nil
}
