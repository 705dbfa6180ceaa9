// Package inventory shows every member, by whichever door it came in, as a ClusterProfile (KEP-4322) to tools that know nothing of fleets.
//
// It owns the ClusterProfiles whose spec.clusterManager.name is muster: their metadata as far as it set it, their spec, and of their status
// the conditions ControlPlaneHealthy and Joined, the version and the properties. It owns the namespace that they are in, if it made it. It only
// reads records and reports; what it says of a member is what the record says. Its invariants: a profile of another manager is never
// touched, and no heartbeat ever causes a write.
package inventory

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/hub/served"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// workers is how many records are handled at once.
const workers = 4

// unwatchedRetry is how soon the end of a namespace is noticed that somebody else made: what is not the hub's is not watched.
const unwatchedRetry = 30 * time.Second

// byName is the index of ClusterProfiles by their name.
const byName = "metadata.name"

// Deps is what the controller needs.
type Deps struct {
	// Client reads records, reports, profiles and the metadata of managed namespaces from the cache.
	Client client.Client
	// Live reads what is not cached.
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Config   *config.Controller
	Kinds    *served.Kinds
}

// Controller reconciles records. A request without a namespace is for a MemberCluster, one with a namespace for a Cluster.
type Controller struct {
	Deps
	namespaces *namespaces
	written    kube.Written
	// shown has, by record, when the status of its profile was last written.
	shown sync.Map
	// told has, by record and reason, what an event last said.
	told sync.Map
}

// New returns a controller.
func New(deps Deps) *Controller {
	return &Controller{Deps: deps, namespaces: &namespaces{deps}, written: kube.Written{Clock: deps.Clock}}
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
		Watches(&clusterv1beta1.InternalMemberCluster{}, handler.EnqueueRequestsFromMapFunc(ofReport)).
		Watches(&inventory.ClusterProfile{}, handler.EnqueueRequestsFromMapFunc(ofProfile)).
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(c.ofNamespace), comesOrGoes).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.all))).
		WatchesRawSource(c.Kinds.Again(c.Client, &fleet.ClusterList{}, &clusterv1beta1.MemberClusterList{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(c)
}

var comesOrGoes = builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})

// Reconcile brings the profile of one record one step nearer to what it should be; its own write wakes it for the next.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	seen, err := c.observe(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if seen.have != nil {
		if wait := c.written.Await(seen.have); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
		}
	}
	next := decide(seen, c.Clock.Now())
	wake, err := c.act(ctx, seen, next)
	if err != nil {
		return ctrl.Result{}, err
	}
	c.tell(seen, next)
	return ctrl.Result{RequeueAfter: wake}, nil
}

// ofReport leads from a report to its record.
func ofReport(_ context.Context, o client.Object) []reconcile.Request {
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "MemberCluster" {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: owner.Name}}}
	}
	if key, ok := membership.RecordOf(o); ok {
		return []reconcile.Request{{NamespacedName: key}}
	}
	return nil
}

// ofProfile leads from a profile to the record that it is of or, if it is somebody else's, stands in the way of. Every profile passes
// here when the hub starts; so those are found whose record went while no hub was there to see it.
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

// ofNamespace leads from the namespace of the inventory to all records.
func (c *Controller) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetName() != c.Config.Current().InventoryNamespace {
		return nil
	}
	return c.all(ctx, o)
}

func (c *Controller) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, list := range []client.ObjectList{&fleet.ClusterList{}, &clusterv1beta1.MemberClusterList{}} {
		err := c.Client.List(ctx, list)
		if err == nil {
			err = meta.EachListItem(list, func(o runtime.Object) error {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o.(client.Object))})
				return nil
			})
		}
		if err != nil { // the cache is in this process; it only fails when the hub ends
			ctrl.LoggerFrom(ctx).Error(err, "Listing the records")
		}
	}
	return requests
}

// Lean keeps of profiles that are not the hub's only whose they are in its memory.
func Lean(profile *inventory.ClusterProfile) {
	if !ours(profile) {
		profile.Labels, profile.Annotations, profile.Status = nil, nil, inventory.ClusterProfileStatus{}
	}
}
