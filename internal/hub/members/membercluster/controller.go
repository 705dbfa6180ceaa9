// Package membercluster reconciles MemberClusters: it prepares their member namespaces, keeps the
// rights there correct, writes their status and lets them leave.
//
// The package writes the finalizer, one label, the annotation of the agent's key and the status of
// a MemberCluster. It removes taints after their condition has become True. It also writes the spec
// of the report; the agent owns the status of the report. The package deletes the Works of a
// leaving member with KubeFleet's agent.
//
// Its invariant: only the identity and the account exchanged for it have access. They lose it
// before the MemberCluster is gone.
package membercluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/credentials/renewal"
	"github.com/muster-fleet/muster/internal/hub/members/audit"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// workers is the number of concurrent reconciles.
	workers = 16
	// unwatchedRetry is the interval between checks of objects without a watch: a foreign namespace,
	// an account.
	unwatchedRetry = 30 * time.Second
)

// Controller reconciles MemberClusters.
type Controller struct {
	*lifecycle.Controller
	// renewer issues and renews the credentials of Muster's agents in exchange for the token of the
	// identity.
	renewer *renewal.Renewer
	// verified holds the rights of members, by member namespace; written the last writes of them.
	verified kube.Memory[string, verified]
	written  kube.Expectations
	// created holds the accounts of members created by this process, by member namespace.
	created kube.Expectations
	// health holds the health of members with KubeFleet's agents, by member namespace.
	health kube.Memory[string, membership.Streak]
	// accounts caches the ServiceAccounts created by others.
	accounts cache.Cache
	// reconnectRights holds the version of the RoleBinding of the account for rejoining, by member
	// namespace. It is from this process's last read or write.
	reconnectRights kube.Memory[string, kube.Verified]
	// reconnectFails: the log already reports the failure to rejoin by key.
	reconnectFails atomic.Bool
}

// New returns a controller. It writes grants of rights to the audit.
func New(deps controller.Deps, moves *lifecycle.MoveLimiter, entries *audit.Writer) *Controller {
	c := &Controller{
		Controller: lifecycle.New(deps, moves, entries, clusterv1beta1.FinalizerMemberCluster, clusterv1beta1.LeaveDelete),
		written:    kube.Expectations{Clock: deps.Clock, Timeout: rightsLag},
		created:    kube.Expectations{Clock: deps.Clock, Timeout: rightsLag},
	}
	c.renewer = renewal.New(deps, c.reconnectToken)
	return c
}

// Register adds the controller to the manager.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, &clusterv1beta1.MemberCluster{}, indexIdentity, func(o client.Object) []string {
		return []string{identityKey(o.(*clusterv1beta1.MemberCluster).Spec.Identity)}
	})
	if err != nil {
		return fmt.Errorf("indexing MemberClusters by their identity: %w", err)
	}
	if c.accounts, err = newAccountCache(ctx, mgr); err != nil {
		return err
	}
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &clusterv1beta1.MemberCluster{},
		handler.OnlyControllerOwner())
	return ctrl.NewControllerManagedBy(mgr).Named("member").
		For(&clusterv1beta1.MemberCluster{}).
		Watches(&clusterv1beta1.MemberCluster{}, controller.On(c.onIdentity)).
		Watches(&clusterv1beta1.InternalMemberCluster{}, owned,
			builder.WithPredicates(predicate.Funcs{UpdateFunc: membernamespace.MoreThanBeats})).
		Watches(&clusterv1beta1.InternalMemberCluster{}, handler.Funcs{UpdateFunc: c.onReport}).
		Watches(&coordinationv1.Lease{}, controller.OnDeleted(owned)).
		Watches(&placement.Work{}, controller.SkipInitial(controller.On(c.onWork))).
		WatchesMetadata(&corev1.Namespace{}, owned, notCreated).
		WatchesMetadata(&corev1.ServiceAccount{}, owned).
		WatchesMetadata(&corev1.ServiceAccount{}, controller.SkipInitial(controller.On(c.onAccount))).
		WatchesRawSource(source.Kind(c.accounts, client.Object(kube.CoreMetadata("ServiceAccount")),
			controller.SkipInitial(controller.On(c.onAccount)))).
		WatchesMetadata(&rbacv1.RoleBinding{}, owned, notCreated).
		WatchesMetadata(&rbacv1.Role{}, owned, notCreated).
		WatchesRawSource(source.Channel(c.Liveness.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.ofNamespace))).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), c.OnSettings(&clusterv1beta1.MemberClusterList{}))).
		WatchesRawSource(c.Kinds.Again(c.Client, &clusterv1beta1.MemberClusterList{})).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// notCreated leaves out creations, because they are this controller's own.
var notCreated = builder.WithPredicates(predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }})

// Reconcile prepares the member namespace and writes the status, or lets a deleted MemberCluster
// leave.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var mc clusterv1beta1.MemberCluster
	if err := c.Client.Get(ctx, request.NamespacedName, &mc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	record, err := c.dropUnknown(ctx, &mc)
	if err != nil {
		return ctrl.Result{}, err
	}
	if removed, err := c.removeTaints(ctx, record); removed || err != nil {
		return ctrl.Result{}, err
	}
	labels := map[string]string{clusterv1beta1.LabelMemberName: mc.Name}
	return c.ReconcileRecord(ctx, record, labels, &reconciliation{Controller: c, mc: record})
}

// onReport counts a changed heartbeat in a report, written by a KubeFleet member agent, and
// enqueues the MemberCluster to show it.
func (c *Controller) onReport(ctx context.Context, e event.UpdateEvent, q controller.Queue) {
	before, after := e.ObjectOld.(*clusterv1beta1.InternalMemberCluster), e.ObjectNew.(*clusterv1beta1.InternalMemberCluster)
	earlier, latest := beatOf(before.Status.AgentStatus), beatOf(after.Status.AgentStatus)
	if latest.IsZero() || latest.Equal(earlier) {
		return
	}
	c.Liveness.Beat(after.Namespace, liveness.InStatus, latest)
	for _, request := range c.ofNamespace(ctx, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: after.Namespace}}) {
		var mc clusterv1beta1.MemberCluster
		if err := c.Client.Get(ctx, request.NamespacedName, &mc, client.UnsafeDisableDeepCopy); err != nil {
			continue // it has left
		}
		if c.countHealth(&mc, after) || c.Clock.Now().Sub(beatOf(mc.Status.AgentStatus)) >= c.Liveness.RefreshReported() {
			q.Add(request)
		}
	}
}

// ofNamespace maps the name of a member namespace to the MemberCluster.
func (c *Controller) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	return membernamespace.MemberClusterOfNamespace(ctx, c.Client, o.GetName())
}
