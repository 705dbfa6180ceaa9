// Package cluster is what is particular to the Cluster door: it prepares the member namespace of every Cluster, keeps what is in it
// whole, shows in the Cluster's status how the member is, and sees it off when the Cluster is deleted.
//
// It writes status.namespace, status.summary, status.resourceCounts, status.display, the conditions Ready, Processed and Supported and, for native agents,
// status.agent, how they reach the hub and the condition HubConfigured; upstream agents write status.agent themselves.
package cluster

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/hub/served"
	"github.com/muster-fleet/muster/internal/kube"
)

// workers is how many Clusters are handled at once.
const workers = 16

// foreignNamespaceRetry is how soon a Cluster notices that a namespace in its way is gone: what is not the hub's is not watched.
const foreignNamespaceRetry = 30 * time.Second

// Deps is what the controller needs.
type Deps struct {
	// Client reads Clusters, reports and the metadata of everything managed from the cache.
	Client client.Client
	// Live reads what is not cached.
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Config   *config.Controller
	Judge    *liveness.Judge
	// Heartbeat returns the period that a member whose report has to be made anew should beat with.
	Heartbeat func() time.Duration
	// Hub returns where the agent of a Cluster should reach the hub.
	Hub func(*fleet.Cluster) *clusterv1beta1.HubAddress
	// SystemNamespace is the hub's own; what was left behind is recorded there.
	SystemNamespace string
	// Turns spreads moves to another address over time.
	Turns *membership.Turns
	Kinds *served.Kinds
}

// Controller reconciles Clusters.
type Controller struct {
	Deps
	written kube.Written
	// missing is since when a member namespace has no identity.
	missing sync.Map
}

// New returns a controller.
func New(deps Deps) *Controller {
	return &Controller{Deps: deps, written: kube.Written{Clock: deps.Clock}}
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	member := handler.EnqueueRequestsFromMapFunc(toCluster)
	return ctrl.NewControllerManagedBy(mgr).Named("cluster").
		For(&fleet.Cluster{}).
		Watches(&fleet.Cluster{}, handler.Funcs{UpdateFunc: c.onLegacyBeat}).
		Watches(&clusterv1beta1.InternalMemberCluster{}, member).
		Watches(&fleet.BundleDeployment{}, c.onDeployment()).
		Watches(&coordinationv1.Lease{}, handler.Funcs{DeleteFunc: onDelete}).
		WatchesMetadata(&corev1.Namespace{}, member).
		WatchesMetadata(&corev1.ServiceAccount{}, member).
		WatchesMetadata(&rbacv1.RoleBinding{}, handler.Funcs{DeleteFunc: onDelete}).
		WatchesMetadata(&rbacv1.Role{}, handler.Funcs{DeleteFunc: onDelete}).
		WatchesMetadata(&rbacv1.ClusterRoleBinding{}, handler.Funcs{DeleteFunc: onDelete}).
		WatchesRawSource(source.Channel(c.Judge.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.ofNamespace))).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.Funcs{GenericFunc: c.onSettings})).
		WatchesRawSource(c.Kinds.Again(c.Client, &fleet.ClusterList{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(c)
}

// Reconcile prepares the member and shows how it is.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, request.NamespacedName, &cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.Labels[fleet.LabelClusterManagement] != "" {
		return ctrl.Result{}, nil
	}
	if wait := c.written.Await(&cluster); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
	}
	if cluster.DeletionTimestamp != nil {
		return c.leave(ctx, &cluster)
	}
	if err := c.claim(ctx, &cluster); err != nil {
		return ctrl.Result{}, err
	}
	seen, err := c.observe(ctx, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := c.prepare(ctx, &cluster, &seen); err != nil {
		return ctrl.Result{}, err
	}
	if left := seen.unsettled(c.Clock.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	if err := c.report(ctx, &cluster, seen, membership.Departure{}); err != nil {
		return ctrl.Result{}, err
	}
	if seen.turn > 0 {
		return ctrl.Result{RequeueAfter: seen.turn}, nil
	}
	if seen.namespace == membership.NamespaceTaken {
		return ctrl.Result{RequeueAfter: foreignNamespaceRetry}, nil
	}
	if seen.identity == membership.Native && seen.liveness == liveness.Online {
		return ctrl.Result{RequeueAfter: refreshLastSeen}, nil
	}
	return ctrl.Result{}, nil
}

// onLegacyBeat counts a moved status.agent.lastSeen as a beat where the agent writes it itself: where there is no report.
func (c *Controller) onLegacyBeat(ctx context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	before, after := e.ObjectOld.(*fleet.Cluster), e.ObjectNew.(*fleet.Cluster)
	if after.Status.Agent.LastSeen.Equal(&before.Status.Agent.LastSeen) || after.Status.Agent.LastSeen.IsZero() {
		return
	}
	if kind, err := c.identity(ctx, membership.OfCluster(after)); err == nil && kind == membership.Legacy {
		c.Judge.Beat(membership.OfCluster(after).Namespace, after.Status.Agent.LastSeen.Time)
	}
}

// onSettings looks at every Cluster after a change of the settings, at its turn to move.
func (c *Controller) onSettings(ctx context.Context, _ event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	var list fleet.ClusterList
	if err := c.Client.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing Clusters after a change of settings")
		return
	}
	for i := range list.Items {
		cluster := &list.Items[i]
		turn := c.Turns.Take(membership.OfCluster(cluster).Namespace, c.Clock.Now())
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cluster)}, turn)
	}
}

func toCluster(_ context.Context, o client.Object) []reconcile.Request {
	key, ok := membership.RecordOf(o)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

func onDelete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, request := range toCluster(ctx, e.Object) {
		q.Add(request)
	}
}

// ofNamespace leads from a member namespace to its Cluster.
func (c *Controller) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	namespace, err := c.namespaceMetadata(ctx, o.GetName())
	if err != nil {
		return nil // the member has left
	}
	return toCluster(ctx, namespace)
}
