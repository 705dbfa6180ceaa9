// Package inventory shows every member, Cluster or MemberCluster, as a ClusterProfile (KEP-4322) to tools that know nothing of fleets.
//
// It owns the ClusterProfiles whose spec.clusterManager.name is muster: the metadata that it sets, the spec, and of the status the conditions
// ControlPlaneHealthy and Joined, the version and the properties. It owns their namespace if it made that. Records and reports are only read, and a profile
// says of a member what its record says. Its invariants: a profile of another manager is never touched, and no heartbeat causes a write.
package inventory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// workers is how many records are reconciled at once.
const workers = 4

// unwatchedRetry is how soon the deletion of a namespace that somebody else made is noticed: the hub watches only its own.
const unwatchedRetry = 30 * time.Second

// byName is an index of ClusterProfiles.
const byName = "metadata.name"

// Controller reconciles records. A request without a namespace is for a MemberCluster, one with a namespace for a Cluster.
type Controller struct {
	controller.Deps
	namespaces *namespaces
	expected   kube.Expectations
	// memories has the memory of each record in each namespace.
	memories sync.Map
}

// New returns a controller.
func New(deps controller.Deps) *Controller {
	return &Controller{Deps: deps, namespaces: &namespaces{deps}, expected: kube.Expectations{Clock: deps.Clock}}
}

// Register adds the controller, and that of the namespace, to the manager.
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
		Watches(&clusterv1beta1.InternalMemberCluster{}, handler.EnqueueRequestsFromMapFunc(ofReport), builder.WithPredicates(predicate.Funcs{UpdateFunc: membernamespace.MoreThanBeats})).
		Watches(&inventory.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(ofProfile)).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(c.ofNamespace), createdOrDeleted).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.all))).
		WatchesRawSource(c.Kinds.Again(c.Client, &fleet.ClusterList{}, &clusterv1beta1.MemberClusterList{})).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

var createdOrDeleted = builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})

// Reconcile brings the profile of one record one step nearer to the desired one; the event of its own write wakes it for the next.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if c.Config.Current().Unknown {
		return ctrl.Result{}, nil // the settings wake it
	}
	all, err := c.observe(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	var first time.Duration
	var failures []error
	for _, o := range all {
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

// reconcile does that for the profile in one namespace, and returns after which time it is to be done again.
func (c *Controller) reconcile(ctx context.Context, o observed) (time.Duration, error) {
	if o.current != nil {
		if wait := c.expected.Await(client.ObjectKeyFromObject(o.current), o.current); wait > 0 {
			return wait, nil // the cache wakes it earlier
		}
	}
	next := decide(o, c.Clock.Now())
	wake, err := c.act(ctx, o, next)
	if err != nil {
		return 0, err
	}
	c.warn(o, next)
	return wake, nil
}

// ofReport maps a report to its record.
func ofReport(ctx context.Context, o client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "MemberCluster" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: owner.Name}}}
	}
	return membernamespace.ToCluster(ctx, o)
}

// ofProfile maps a profile to its record or, if the profile is another manager's, to the record that wants its name. All profiles are mapped when the hub
// starts, so that those are removed whose record was deleted while no hub ran.
func ofProfile(_ context.Context, o client.Object) []reconcile.Request {
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

// ofNamespace maps a namespace of the inventory to all records.
func (c *Controller) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	if !slices.Contains(c.Config.Current().InventoryNamespaces(), o.GetName()) {
		return nil
	}
	return c.all(ctx, o)
}

func (c *Controller) all(ctx context.Context, o client.Object) []reconcile.Request {
	return append(controller.All(c.Client, &fleet.ClusterList{})(ctx, o), controller.All(c.Client, &clusterv1beta1.MemberClusterList{})(ctx, o)...)
}

// Lean drops from other managers' profiles all but their name and manager, which is what the cache is asked for.
func Lean(profile *inventory.ClusterProfile) {
	if !ours(profile) {
		profile.Labels, profile.Annotations, profile.Status = nil, nil, inventory.ClusterProfileStatus{}
	}
}
