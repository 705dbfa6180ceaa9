// Package member is what is particular to the MemberCluster door: it prepares the namespace of every MemberCluster, keeps what is in it
// as it should be, shows in the record's status how the member is, and sees it off when the record is deleted.
//
// It writes the finalizer and one label of a MemberCluster, all of its status, and the spec of its report; the status of the report
// is the agent's. Its invariant: nobody but the identity has access, and it has none any more when the record goes.
package member

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/muster-fleet/muster/internal/hub/config"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/hub/served"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// workers is how many MemberClusters are handled at once.
	workers = 16
	// unwatchedRetry is how soon a member notices a change of what the hub does not watch: a namespace in its way, an account.
	unwatchedRetry = 30 * time.Second
	// minSilence is the least that a silent member is given.
	minSilence = 30 * time.Second
)

// Deps is what the controller needs.
type Deps struct {
	// Client reads MemberClusters, reports and the metadata of everything managed from the cache.
	Client client.Client
	// Live reads what is not cached.
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Config   *config.Controller
	Judge    *liveness.Judge
	// SystemNamespace is the hub's own; what was left behind is recorded there.
	SystemNamespace string
	// Turns spreads moves to another address of the hub over time.
	Turns *membership.Turns
	Kinds *served.Kinds
}

// Controller reconciles MemberClusters.
type Controller struct {
	Deps
	written kube.Written
}

// New returns a controller.
func New(deps Deps) *Controller {
	return &Controller{Deps: deps, written: kube.Written{Clock: deps.Clock}}
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &clusterv1beta1.MemberCluster{}, handler.OnlyControllerOwner())
	return ctrl.NewControllerManagedBy(mgr).Named("member").
		For(&clusterv1beta1.MemberCluster{}).
		Watches(&clusterv1beta1.InternalMemberCluster{}, owned).
		Watches(&clusterv1beta1.InternalMemberCluster{}, handler.Funcs{UpdateFunc: c.onReport}).
		Watches(&coordinationv1.Lease{}, handler.Funcs{DeleteFunc: deleted(owned)}).
		WatchesMetadata(&corev1.Namespace{}, owned, notMade).
		WatchesMetadata(&rbacv1.RoleBinding{}, owned, notMade).
		WatchesMetadata(&rbacv1.Role{}, owned, notMade).
		WatchesRawSource(source.Channel(c.Judge.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.ofNamespace))).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.Funcs{GenericFunc: c.onSettings})).
		WatchesRawSource(c.Kinds.Again(c.Client, &clusterv1beta1.MemberClusterList{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(c)
}

// notMade leaves out creations: what is created here, this controller has just created.
var notMade = builder.WithPredicates(predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }})

// deleted passes on deletions only: a beat must wake nobody.
func deleted(h handler.EventHandler) func(context.Context, event.DeleteEvent, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	return h.Delete
}

// Reconcile prepares the member, shows how it is, or sees it off.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var mc clusterv1beta1.MemberCluster
	if err := c.Client.Get(ctx, request.NamespacedName, &mc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if wait := c.written.Await(&mc); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
	}
	if mc.DeletionTimestamp != nil {
		return c.leave(ctx, &mc)
	}
	if err := c.claim(ctx, &mc); err != nil {
		return ctrl.Result{}, err
	}
	seen, err := c.observe(ctx, &mc)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := c.prepare(ctx, &mc, &seen); err != nil {
		return ctrl.Result{}, err
	}
	if err := c.report(ctx, &mc, seen, membership.Departure{}); err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case seen.turn > 0:
		return ctrl.Result{RequeueAfter: seen.turn}, nil
	case judgeReadyToJoin(seen).reason != reasonReadyToJoin:
		return ctrl.Result{RequeueAfter: unwatchedRetry}, nil
	case seen.liveness == liveness.Online:
		return ctrl.Result{RequeueAfter: refreshLastSeen}, nil
	}
	return ctrl.Result{}, nil
}

// onSettings looks at every MemberCluster after a change of the settings, at its turn to move.
func (c *Controller) onSettings(ctx context.Context, _ event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	var list clusterv1beta1.MemberClusterList
	if err := c.Client.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing MemberClusters after a change of settings")
		return
	}
	for i := range list.Items {
		mc := &list.Items[i]
		turn := c.Turns.Take(membership.OfMemberCluster(mc).Namespace, c.Clock.Now())
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(mc)}, turn)
	}
}

// onReport counts a moved heartbeat in a report as a beat: that is how a KubeFleet member agent shows that it is alive.
func (c *Controller) onReport(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	before, after := e.ObjectOld.(*clusterv1beta1.InternalMemberCluster), e.ObjectNew.(*clusterv1beta1.InternalMemberCluster)
	if was, is := beatOf(before.Status.AgentStatus), beatOf(after.Status.AgentStatus); !is.IsZero() && !is.Equal(was) {
		c.Judge.Beat(after.Namespace, is)
	}
}

// ofNamespace leads from a member namespace to its MemberCluster.
func (c *Controller) ofNamespace(_ context.Context, o client.Object) []reconcile.Request {
	name, ok := membership.MemberClusterOf(o.GetName())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}
