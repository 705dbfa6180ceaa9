// Package inventory shows every member, Cluster or MemberCluster, as a ClusterProfile (KEP-4322) to
// tools without knowledge of fleets.
//
// Inventory owns the ClusterProfiles with spec.clusterManager.name muster. It writes their spec,
// some of their metadata, and in the status the conditions ControlPlaneHealthy and Joined, the
// version and the properties. It owns their namespace if the hub created it. Inventory only reads
// membership objects and reports, and a profile repeats the state of its membership object. Its
// invariants: the hub never touches a profile of another manager, and no heartbeat causes a write.
package inventory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// workers is the number of concurrent reconciles.
const workers = 4

// unwatchedRetry is the interval between checks of another creator's namespace: the hub watches
// only its own namespaces.
const unwatchedRetry = 30 * time.Second

// byName indexes ClusterProfiles by name.
const byName = "metadata.name"

// Controller reconciles membership objects. A request with a namespace names a Cluster, one without
// a MemberCluster.
type Controller struct {
	controller.Deps
	namespaces *namespaces
	expected   kube.Expectations
	// memories has the memory of each membership object in each namespace.
	memories kube.Memory[place, *memory]
}

// New returns the controller.
func New(deps controller.Deps) *Controller {
	return &Controller{Deps: deps, namespaces: &namespaces{deps}, expected: kube.Expectations{Clock: deps.Clock}}
}

// Register adds this controller and the controller of the namespace to the manager.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	name := func(o client.Object) []string { return []string{o.GetName()} }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &inventory.ClusterProfile{}, byName, name); err != nil {
		return err
	}
	if err := c.namespaces.register(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("inventory").
		Watches(&fleet.Cluster{}, &handler.EnqueueRequestForObject{}).
		Watches(&clusterv1beta1.MemberCluster{}, &handler.EnqueueRequestForObject{}).
		Watches(&clusterv1beta1.InternalMemberCluster{}, handler.EnqueueRequestsFromMapFunc(ofReport),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: membernamespace.MoreThanBeats})).
		Watches(&inventory.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(OfProfile)).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(c.ofNamespace), createdOrDeleted).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.all))).
		WatchesRawSource(c.Kinds.Again(c.Client, &fleet.ClusterList{}, &clusterv1beta1.MemberClusterList{})).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

var createdOrDeleted = builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})

// Reconcile brings the profile of one membership object a step closer to the desired profile. The
// event of the write triggers the next step.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if c.Config.Current().Unknown {
		return ctrl.Result{}, nil // the settings enqueue it
	}
	profiles, err := c.observe(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	var first time.Duration
	var failures []error
	for _, o := range profiles {
		wake, err := c.reconcile(ctx, o)
		if wake > 0 && (first == 0 || wake < first) {
			first = wake
		}
		failures = append(failures, err)
	}
	if err := errors.Join(failures...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: first}, nil
}

// reconcile does this for the profile in one namespace, and returns the time until the next
// reconcile.
func (c *Controller) reconcile(ctx context.Context, o observed) (time.Duration, error) {
	if o.current != nil {
		if wait := c.expected.Await(client.ObjectKeyFromObject(o.current), o.current); wait > 0 {
			return wait, nil // the cache enqueues it earlier
		}
	}
	now := c.Clock.Now()
	if o.current == nil && o.record != nil {
		if wait := c.Joins.Delay(o.record.object.GetCreationTimestamp().Time, now); wait > 0 {
			return wait, nil
		}
	}
	next := decide(o, now)
	wake, err := c.act(ctx, o, next)
	if err != nil {
		return 0, err
	}
	c.warn(o, next)
	return wake, nil
}

// ofReport maps a report to its membership object.
func ofReport(ctx context.Context, o client.Object) []reconcile.Request {
	if owner := kube.ControllerOf(o, clusterv1beta1.GroupVersion.WithKind("MemberCluster").GroupKind()); owner != nil {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: owner.Name}}}
	}
	return membernamespace.ToCluster(ctx, o)
}

// OfProfile maps a profile to its membership object. A profile of another manager maps to the
// membership object that needs the same name. At its start the hub maps all profiles, and removes
// profiles of members deleted while no hub ran.
func OfProfile(_ context.Context, o client.Object) []reconcile.Request {
	key, ok := membership.RecordOf(o)
	if !ok || naming.ClusterProfile(key.Namespace, key.Name) != o.GetName() {
		workspace, name, ofCluster := strings.Cut(o.GetName(), ".")
		key = types.NamespacedName{Namespace: workspace, Name: name}
		if !ofCluster {
			key = types.NamespacedName{Name: o.GetName()}
		}
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// ofNamespace maps a namespace of the inventory to all membership objects.
func (c *Controller) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	if !slices.Contains(c.Config.Current().InventoryNamespaces(), o.GetName()) {
		return nil
	}
	return c.all(ctx, o)
}

func (c *Controller) all(ctx context.Context, o client.Object) []reconcile.Request {
	return append(controller.All(c.Client, &fleet.ClusterList{})(ctx, o),
		controller.All(c.Client, &clusterv1beta1.MemberClusterList{})(ctx, o)...)
}

// Lean drops everything but name and manager from profiles of other managers; readers of the cache
// need no more.
func Lean(profile *inventory.ClusterProfile) {
	if !Ours(profile) {
		profile.Labels, profile.Annotations, profile.Status = nil, nil, inventory.ClusterProfileStatus{}
	}
}
