// Package bundle turns Bundles into deployments: it decides which Clusters a Bundle is for, keeps
// its resources as one Content that all of them share, writes a BundleDeployment into the member
// namespace of each, partition by partition, and reports their states.
//
// It writes the status and the finalizer of Bundles, the status of BundleNamespaceMappings,
// Contents, and BundleDeployments with the Secrets of their values; the status of a
// BundleDeployment is its agent's, but for display. Its invariant: what did not change for a
// Cluster is not written for it.
package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// workers is how many Bundles are handled at once.
	workers = 8
	// writers is how many deployments of a Bundle are written at once.
	writers = 32
	// deploymentTimeout is how long a BundleDeployment that was written is expected in the cache: one
	// that was made and deleted at once never is.
	deploymentTimeout = 10 * time.Second
	// gather is how long the Bundle of a BundleDeployment that changed waits for others, so that it is
	// not planned for each by itself.
	gather = 200 * time.Millisecond
)

// Indexes of the cache.
const (
	// indexBundle is of BundleDeployments by the Bundle, as namespace/name.
	indexBundle = "bundle"
	// indexContent is of BundleDeployments by the names of the Contents that are referred to.
	indexContent = "content"
	// indexName is of Bundles by their name, in whatever namespace.
	indexName = "name"
	// indexCluster is of Bundles by the UID of the one Cluster that they are for, or anyCluster.
	indexCluster = "cluster"
	anyCluster   = "any"
)

// Deps are what the controller is given.
type Deps struct {
	controller.Deps
	// IsAgents says whether a Bundle that is labelled as that of an agent is what the hub wrote. It is
	// not trusted by its label.
	IsAgents func(context.Context, *fleet.Bundle) (bool, error)
	// AgentChart returns the Content of that name if the hub can make it, which all Bundles of agents
	// name instead of having resources; else nil.
	AgentChart func(name string) (*fleet.Content, error)
	// StateDir is a directory that a hub which is killed leaves to the next one in its Pod; empty
	// if there is none.
	StateDir string
}

// Controller reconciles Bundles.
type Controller struct {
	Deps
	// bundleWrites, deploymentWrites and secretWrites are what the cache does not show yet.
	bundleWrites, deploymentWrites, secretWrites kube.Expectations
	// editedSecrets are the Secrets with values that another client wrote, with their resource
	// version, or that an agent refuses, until the hub finds the values right or writes them.
	editedSecrets sync.Map
	contents      contents
	lost          lost
	journal       *journal
	// foreign is a cache of the metadata of objects that the hub did not make: namespaces, and Secrets
	// with the values of Bundles.
	foreign cache.Cache
	// computed by the key of the Bundle; one reconcile at a time uses an entry.
	computed sync.Map
}

// New returns a controller.
func New(deps Deps) *Controller {
	return &Controller{
		Deps:             deps,
		bundleWrites:     kube.Expectations{Clock: deps.Clock},
		deploymentWrites: kube.Expectations{Clock: deps.Clock, Timeout: deploymentTimeout, Whole: true},
		secretWrites:     kube.Expectations{Clock: deps.Clock},
		contents:         newContents(deps.Deps),
	}
}

// Register adds the controllers of Bundles and Contents to the manager.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	for _, index := range []struct {
		object client.Object
		name   string
		of     client.IndexerFunc
	}{
		{&fleet.BundleDeployment{}, indexBundle, func(o client.Object) []string { return []string{bundleOf(o).String()} }},
		{&fleet.BundleDeployment{}, indexContent, func(o client.Object) []string {
			return slices.Collect(maps.Keys(contentNames(o.(*fleet.BundleDeployment))))
		}},
		{&fleet.Bundle{}, indexName, func(o client.Object) []string { return []string{o.GetName()} }},
		{&fleet.Bundle{}, indexCluster, func(o client.Object) []string { return []string{clusterOf(o)} }},
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, index.object, index.name, index.of); err != nil {
			return err
		}
	}
	if err := c.contents.register(mgr); err != nil {
		return err
	}
	var err error
	if c.journal, err = openJournal(c.StateDir); err != nil {
		return err
	}
	if c.foreign, err = newForeignCache(ctx, mgr); err != nil {
		return err
	}
	shown := &mappings{Client: c.Client, clock: c.Clock, config: c.Config, namespaces: c.foreign}
	if err := shown.register(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("bundle").
		For(&fleet.Bundle{}).
		Watches(&fleet.BundleDeployment{}, controller.On(c.onDeployment)).
		Watches(&fleet.Cluster{}, controller.SkipInitial(controller.On(c.onCluster))).
		Watches(&fleet.ClusterGroup{}, controller.SkipInitial(handler.EnqueueRequestsFromMapFunc(c.ofGroup)),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))). // not its counts
		Watches(&fleet.BundleNamespaceMapping{}, controller.SkipInitial(handler.EnqueueRequestsFromMapFunc(c.ofMapping)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.onSettings))).
		WatchesMetadata(&corev1.Namespace{}, controller.SkipInitial(controller.On(c.onMemberNamespace))).
		WatchesRawSource(source.Kind(c.foreign, client.Object(kube.CoreMetadata("Namespace")), controller.On(c.onWorkspace))).
		WatchesMetadata(&corev1.Secret{}, controller.On(c.onSecret)).
		WatchesRawSource(source.Kind(c.foreign, client.Object(kube.CoreMetadata("Secret")), &handler.EnqueueRequestForObject{})).
		WatchesMetadata(&fleet.Content{}, controller.On(c.onContent)).
		WatchesRawSource(c.Kinds.Again(c.Client, &fleet.BundleList{})).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// clusterOf is the UID of the Cluster of an agent's Bundle, which alone the Bundle is for;
// anyCluster if it is another Bundle.
func clusterOf(bundle client.Object) string {
	if bundle.GetLabels()[fleet.LabelAgent] == "" {
		return anyCluster
	}
	if owner := metav1.GetControllerOf(bundle); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// computedFor returns what was computed of a Bundle.
func (c *Controller) computedFor(key types.NamespacedName) *computed {
	value, _ := c.computed.LoadOrStore(key, &computed{})
	return value.(*computed)
}

// Reconcile plans the deployments of a Bundle, writes what changed, and reports their states.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var bundle fleet.Bundle
	err := c.Client.Get(ctx, request.NamespacedName, &bundle)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, c.cleanUp(ctx, request.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if wait := c.bundleWrites.Await(request.NamespacedName, &bundle); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
	}
	if bundle.DeletionTimestamp != nil {
		return ctrl.Result{}, c.remove(ctx, &bundle)
	}
	if !controllerutil.ContainsFinalizer(&bundle, fleet.FinalizerBundle) {
		return ctrl.Result{}, c.patchFinalizer(ctx, &bundle, controllerutil.AddFinalizer)
	}
	seen, err := c.observe(ctx, &bundle)
	if errors.Is(err, errStale) || apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return ctrl.Result{}, nil // the cache shows it with the next event
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	planned := decide(seen)
	created, more, actErr := c.act(ctx, seen, planned)
	wait, err := c.report(ctx, seen, planned, created)
	displayIn, displayErr := c.updateDisplays(ctx, seen)
	if err := errors.Join(actErr, err, displayErr); err != nil {
		return ctrl.Result{}, err
	}
	if more {
		wait = sooner(wait, gather)
	}
	return ctrl.Result{RequeueAfter: sooner(wait, displayIn)}, nil
}

// sooner is the shorter of two waits; 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// patchFinalizer adds or removes the finalizer; its event has the Bundle reconciled again.
func (c *Controller) patchFinalizer(ctx context.Context, bundle *fleet.Bundle, change func(client.Object, string) bool) error {
	before := bundle.DeepCopy()
	if !change(bundle, fleet.FinalizerBundle) {
		return nil
	}
	if err := kube.Patch(ctx, c.Client, before, bundle); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the finalizers: %w", err)
	}
	return nil
}
