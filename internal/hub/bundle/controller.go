// Package bundle turns Bundles into deployments: it decides which Clusters a Bundle is for, keeps its resources as one Content that all of
// them share, writes a BundleDeployment into the member namespace of each, wave by wave, and shows how they stand.
//
// It writes the status and the finalizer of Bundles, Contents, and BundleDeployments with the Secrets of their values; the status of a
// BundleDeployment is its agent's. Its invariant: what did not change for a Cluster is not written for it.
package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// workers is how many Bundles are handled at once.
	workers = 8
	// writers is how many deployments of a Bundle are written at once.
	writers = 32
)

// Indexes of the cache.
const (
	// indexBundle is of BundleDeployments by the Bundle, as namespace/name.
	indexBundle = "bundle"
	// indexContent is of BundleDeployments by the names of the Contents that are referred to.
	indexContent = "content"
	// indexName is of Bundles by their name, in whatever namespace.
	indexName = "name"
)

// Deps is what the controller needs.
type Deps struct {
	// Client reads Bundles without their resources, Clusters, ClusterGroups, deployments without their options, and metadata from the cache.
	Client client.Client
	// Live reads the resources of Bundles, which are not cached.
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
}

// Controller reconciles Bundles.
type Controller struct {
	Deps
	written  kube.Written
	settling settling
	contents contents
	values   values
	// foreign has the metadata of what the hub did not make: namespaces, and Secrets with the values of Bundles.
	foreign cache.Cache
	// memories by the key of the Bundle; each is used by one reconcile at a time.
	memories sync.Map
}

// New returns a controller.
func New(deps Deps) *Controller {
	return &Controller{Deps: deps, contents: contents{
		Client: deps.Client, live: deps.Live, clock: deps.Clock, wanted: map[types.NamespacedName]string{}, freed: make(chan event.GenericEvent, workers),
	}}
}

// Register adds the controllers of Bundles and Contents to the manager.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	for _, index := range []struct {
		object client.Object
		name   string
		of     client.IndexerFunc
	}{
		{&fleet.BundleDeployment{}, indexBundle, func(o client.Object) []string { return []string{bundleOf(o).String()} }},
		{&fleet.BundleDeployment{}, indexContent, func(o client.Object) []string { return slices.Collect(maps.Keys(contentNames(o))) }},
		{&fleet.Bundle{}, indexName, func(o client.Object) []string { return []string{o.GetName()} }},
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, index.object, index.name, index.of); err != nil {
			return err
		}
	}
	if err := c.contents.register(mgr); err != nil {
		return err
	}
	var err error
	if c.foreign, err = newForeignCache(mgr); err != nil {
		return fmt.Errorf("making a cache of workspaces and values: %w", err)
	}
	if err := mgr.Add(c.foreign); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("bundle").
		For(&fleet.Bundle{}).
		Watches(&fleet.BundleDeployment{}, c.onDeployment()).
		Watches(&fleet.Cluster{}, c.onCluster()).
		Watches(&fleet.ClusterGroup{}, handler.EnqueueRequestsFromMapFunc(c.ofGroup)).
		Watches(&fleet.BundleNamespaceMapping{}, handler.EnqueueRequestsFromMapFunc(c.ofMapping)).
		WatchesMetadata(&corev1.Namespace{}, c.onMemberNamespace()).
		WatchesRawSource(source.Kind(c.foreign, namespaceMetadata(), c.onWorkspace())).
		WatchesMetadata(&corev1.Secret{}, c.onSecret()).
		WatchesRawSource(source.Kind(c.foreign, secretMetadata(), &handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{})).
		WatchesMetadata(&fleet.Content{}, c.onContent()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(c)
}

// memory returns what is remembered of a Bundle.
func (c *Controller) memory(key types.NamespacedName) *memory {
	value, _ := c.memories.LoadOrStore(key, &memory{})
	return value.(*memory)
}

// Reconcile plans the deployments of a Bundle, writes what changed, and shows how they stand.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var bundle fleet.Bundle
	err := c.Client.Get(ctx, request.NamespacedName, &bundle)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, c.abandon(ctx, request.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if c.written.Stale(&bundle) {
		return ctrl.Result{}, nil // the cache will say so in a moment
	}
	if bundle.DeletionTimestamp != nil {
		return ctrl.Result{}, c.remove(ctx, &bundle)
	}
	if !controllerutil.ContainsFinalizer(&bundle, fleet.FinalizerBundle) {
		return ctrl.Result{}, c.patchFinalizer(ctx, &bundle, controllerutil.AddFinalizer)
	}
	seen, err := c.observe(ctx, &bundle)
	if errors.Is(err, errBehind) || apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil // its event is on the way
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	planned := decide(seen)
	created, actErr := c.act(ctx, seen, planned)
	wait, err := c.report(ctx, seen, planned, created)
	if err := errors.Join(actErr, err); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// patchFinalizer adds or removes the finalizer; the event of it goes on from there.
func (c *Controller) patchFinalizer(ctx context.Context, bundle *fleet.Bundle, change func(client.Object, string) bool) error {
	before := bundle.DeepCopy()
	if !change(bundle, fleet.FinalizerBundle) {
		return nil
	}
	if err := c.Client.Patch(ctx, bundle, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), kube.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the finalizers: %w", err)
	}
	return nil
}
