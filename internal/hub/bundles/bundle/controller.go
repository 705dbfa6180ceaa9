// Package bundle turns Bundles into deployments. It selects the Clusters of a Bundle, and keeps
// the Bundle's resources as one Content shared by all of them. It writes a BundleDeployment into
// each member namespace, partition by partition, and reports their states.
//
// It writes the status and the finalizer of Bundles, the status of BundleNamespaceMappings,
// Contents, and BundleDeployments with the Secrets of their values. The agent owns the status of a
// BundleDeployment; the hub corrects its display. Its invariant: without a change for a Cluster,
// the hub writes nothing for it.
package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
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
	// workers is the number of Bundles reconciled at once.
	workers = 8
	// writers is the number of deployments of a Bundle written at once.
	writers = 32
	// deploymentTimeout limits the wait for a written BundleDeployment to reach the cache. A
	// BundleDeployment created and deleted at once never reaches it.
	deploymentTimeout = 10 * time.Second
	// gather is the delay of a Bundle's reconcile after a change of its BundleDeployment. Further
	// changes then share one plan.
	gather = 200 * time.Millisecond
)

// Indexes of the cache.
const (
	// indexBundle indexes BundleDeployments by their Bundle, as namespace/name.
	indexBundle = "bundle"
	// indexContent indexes BundleDeployments by the names of their Contents.
	indexContent = "content"
	// indexName indexes Bundles by name, in any namespace.
	indexName = "name"
	// indexCluster indexes Bundles by the UID of their only Cluster, or by anyCluster.
	indexCluster = "cluster"
	indexSource  = "source"
	anyCluster   = "any"
)

// Deps are the dependencies of the controller.
type Deps struct {
	controller.Deps
	// IsAgents reports whether the hub wrote a Bundle with an agent's label. The hub does not trust
	// the label alone.
	IsAgents func(context.Context, *fleet.Bundle) (bool, error)
	// AgentChart returns the Content with this name if the hub can create it, else nil. All Bundles of
	// agents name it and have no resources.
	AgentChart func(name string) (*fleet.Content, error)
	// StateDir is a directory for the next hub in the same Pod, after this one is killed; empty if
	// there is none.
	StateDir string
}

// Controller reconciles Bundles.
type Controller struct {
	Deps
	// bundleWrites, deploymentWrites and secretWrites are the writes missing in the cache so far.
	bundleWrites, deploymentWrites, secretWrites kube.Expectations
	// editedSecrets maps Secrets with values to their resource version: Secrets written by
	// another client, or refused by an agent. They stay until the hub finds the values right or
	// writes them.
	editedSecrets kube.Memory[types.NamespacedName, string]
	// sent has the time of a new version for each deployment without a report about it.
	sent     kube.Memory[types.UID, time.Time]
	contents contents
	lost     lost
	journal  *journal
	sources  *sourceWatch
	// restricted holds the namespaces with Policies at the hub's last look. It is complete once the
	// hub has seen the definition of Policies in place.
	restricted     kube.Memory[string, bool]
	policiesServed atomic.Bool
	// computed by the key of the Bundle; one reconcile at a time uses an entry.
	computed kube.Memory[types.NamespacedName, *computed]
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
		{&fleet.Bundle{}, indexDependsOn, dependencyKeys},
		{&fleet.Bundle{}, indexSource, sourceKeys},
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
	values, err := newValuesCache(ctx, mgr)
	if err != nil {
		return err
	}
	if c.sources, err = newSourceWatch(mgr, c.Client); err != nil {
		return err
	}
	shown := &mappings{Client: c.Client, clock: c.Clock, config: c.Config, namespaces: c.Workspaces}
	if err := shown.register(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("bundle").
		For(&fleet.Bundle{}).
		Watches(&fleet.Bundle{}, controller.SkipInitial(controller.On(c.onDependency))).
		Watches(&fleet.BundleDeployment{}, controller.On(c.onDeployment)).
		Watches(&fleet.Cluster{}, controller.SkipInitial(controller.On(c.onCluster))).
		Watches(&fleet.ClusterGroup{}, controller.SkipInitial(handler.EnqueueRequestsFromMapFunc(c.ofGroup)),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))). // not its counts
		Watches(&fleet.Policy{}, controller.SkipInitial(handler.EnqueueRequestsFromMapFunc(c.ofPolicy)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&fleet.BundleNamespaceMapping{}, controller.SkipInitial(handler.EnqueueRequestsFromMapFunc(c.ofMapping)),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.onSettings))).
		WatchesMetadata(&corev1.Namespace{}, controller.SkipInitial(controller.On(c.onMemberNamespace))).
		WatchesRawSource(c.Workspaces.Source(controller.On(c.onWorkspace))).
		WatchesMetadata(&corev1.Secret{}, controller.On(c.onSecret)).
		WatchesRawSource(source.Kind(values, client.Object(kube.CoreMetadata("Secret")), &handler.EnqueueRequestForObject{})).
		WatchesMetadata(&fleet.Content{}, controller.On(c.onContent)).
		WatchesRawSource(source.Channel(c.sources.events, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(c.Kinds.Again(c.Client, &fleet.BundleList{})).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// clusterOf returns the UID of the only Cluster of an agent's Bundle; anyCluster for other
// Bundles.
func clusterOf(bundle client.Object) string {
	if bundle.GetLabels()[fleet.LabelAgent] == "" {
		return anyCluster
	}
	if owner := metav1.GetControllerOf(bundle); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// computedFor returns the computed state of a Bundle.
func (c *Controller) computedFor(key types.NamespacedName) *computed {
	return c.computed.Of(key, &computed{})
}

// Reconcile plans the deployments of a Bundle, writes the changes, and reports their states.
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
		return ctrl.Result{RequeueAfter: wait}, nil // the cache enqueues it earlier
	}
	if bundle.DeletionTimestamp != nil {
		return ctrl.Result{}, c.remove(ctx, &bundle)
	}
	if !controllerutil.ContainsFinalizer(&bundle, fleet.FinalizerBundle) {
		return ctrl.Result{}, c.patchFinalizer(ctx, &bundle, controllerutil.AddFinalizer)
	}
	seen, err := c.observe(ctx, &bundle)
	if err == nil {
		seen.endless, err = c.findEndless(ctx, &bundle)
	}
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
	if err := errors.Join(actErr, err, displayErr, c.computedFor(request.NamespacedName).unread); err != nil {
		return ctrl.Result{}, err
	}
	if more {
		wait = sooner(wait, gather)
	}
	return ctrl.Result{RequeueAfter: sooner(wait, displayIn)}, nil
}

// sooner returns the shorter of two waits; 0 means no wait.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// patchFinalizer adds or removes the finalizer; the resulting event requeues the Bundle.
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
