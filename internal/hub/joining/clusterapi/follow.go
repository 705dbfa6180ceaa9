package clusterapi

import (
	"context"
	"fmt"
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
	// kind is the kind in the version of the API server; empty while the hub does not follow it.
	kind  schema.GroupVersionKind
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
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
	if !c.followed.kind.Empty() {
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
	enqueue := func(o any) {
		if of, ok := o.(metav1.Object); ok {
			c.followed.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{
				Namespace: of.GetNamespace(), Name: of.GetName() + secretSuffix,
			}})
		}
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, after any) { enqueue(after) },
	}); err != nil {
		return ctrl.Result{}, fmt.Errorf("watching the clusters of Cluster API: %w", err)
	}
	c.followed.kind = mapping.GroupVersionKind
	return ctrl.Result{}, nil
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

// again enqueues the Secrets of all workspaces that register clusters of Cluster API.
func (c *Controller) again(ctx context.Context) error {
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
	case c.followed.kind.Empty():
		return nil
	}
	from := &unstructured.Unstructured{}
	from.SetGroupVersionKind(c.followed.kind)
	if err := c.followed.cache.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: name}, from); err != nil {
		return client.IgnoreNotFound(err) // its own deletion removes the Cluster
	}
	owned := false
	for _, owner := range cluster.OwnerReferences {
		owned = owned || owner.UID == from.GetUID() && kube.IsOwner(owner, schema.GroupKind{Group: group, Kind: "Cluster"})
	}
	if !owned {
		return nil
	}
	return c.write(ctx, cluster, wanted(rule, from))
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
