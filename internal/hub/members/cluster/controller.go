// Package cluster reconciles Clusters: it prepares their member namespaces, restores objects
// deleted there, writes their status and lets them leave. It deletes a Cluster created for a
// registration request if no user has written to it and no agent has sent a heartbeat in time.
//
// In the status, the package writes namespace, summary, resourceCounts, the counts of GitRepos,
// display and credential. It writes the conditions Ready, Processed, LabelsAccepted,
// DeliveryApproved, Cloned, Supported and Pruned. For native agents it also writes agent, the
// address of the hub and the condition HubConfigured. Upstream agents write status.agent
// themselves. Its invariant: the hub keeps an upstream agent's part of the status unchanged.
package cluster

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/credentials/renewal"
	"github.com/muster-fleet/muster/internal/hub/members/audit"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// workers is the number of concurrent reconciles.
const workers = 16

// foreignNamespaceRetry is the pause until the next check for a foreign namespace of the same name:
// the hub watches only its own namespaces.
const foreignNamespaceRetry = 30 * time.Second

// Controller reconciles Clusters.
type Controller struct {
	*lifecycle.Controller
	hub func(*fleet.Cluster) *clusterv1beta1.HubAddress
	// missing holds the time since when a member namespace has no identity, by namespace.
	missing kube.Memory[string, time.Time]
	// editedRights holds the Clusters with a right written since the last comparison.
	editedRights kube.Memory[types.NamespacedName, bool]
	// renewer renews the credentials of agents with a key.
	renewer *renewal.Renewer
}

// New returns a controller. hub returns the desired address of the hub for the agent of a Cluster.
// reconnect returns a token for agents of a workspace to rejoin.
func New(deps controller.Deps, moves *lifecycle.MoveLimiter, hub func(*fleet.Cluster) *clusterv1beta1.HubAddress,
	reconnect func(ctx context.Context, workspace string) string, entries *audit.Writer) *Controller {
	return &Controller{
		Controller: lifecycle.New(deps, moves, entries, fleet.FinalizerCluster, clusterv1beta1.LeaveOrphan), hub: hub,
		renewer: renewal.New(deps, func(ctx context.Context, s *renewal.State) string { return reconnect(ctx, s.Workspace) }),
	}
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	member := handler.EnqueueRequestsFromMapFunc(membernamespace.ToCluster)
	return ctrl.NewControllerManagedBy(mgr).Named("cluster").
		For(&fleet.Cluster{}).
		Watches(&fleet.Cluster{}, handler.Funcs{UpdateFunc: c.onLegacyBeat}).
		Watches(&clusterv1beta1.InternalMemberCluster{}, member).
		Watches(&fleet.BundleDeployment{}, c.onDeployment()).
		Watches(&fleet.ClusterRegistration{}, controller.SkipInitial(controller.On(c.onDenial))).
		Watches(&coordinationv1.Lease{}, controller.OnDeleted(member)).
		WatchesMetadata(&corev1.Namespace{}, member).
		WatchesMetadata(&corev1.ServiceAccount{}, member).
		WatchesMetadata(&rbacv1.RoleBinding{}, controller.On(c.onRights)).
		WatchesMetadata(&rbacv1.Role{}, controller.On(c.onRights)).
		WatchesRawSource(c.Workspaces.Source(controller.On(c.onWorkspace))).
		WatchesRawSource(source.Channel(c.Liveness.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.ofNamespace))).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), c.OnSettings(&fleet.ClusterList{}))).
		WatchesRawSource(c.Kinds.Again(c.Client, &fleet.ClusterList{})).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// Reconcile prepares the member namespace and writes the status, or lets a deleted Cluster leave.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, request.NamespacedName, &cluster); apierrors.IsNotFound(err) {
		c.editedRights.Forget(request.NamespacedName)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, err
	}
	r := &reconciliation{Controller: c, cluster: &cluster}
	// no other manager removes this hub's objects of a deleted Cluster
	if cluster.Labels[fleet.LabelClusterManagement] != "" && cluster.DeletionTimestamp.IsZero() {
		return r.yield(ctx)
	}
	result, err := c.ReconcileRecord(ctx, &cluster, nil, r)
	return r.awaitDenial(result), err
}

// onLegacyBeat counts a changed status.agent.lastSeen as a heartbeat if a Rancher Fleet agent has
// written it.
func (c *Controller) onLegacyBeat(ctx context.Context, e event.UpdateEvent, _ controller.Queue) {
	before, after := e.ObjectOld.(*fleet.Cluster), e.ObjectNew.(*fleet.Cluster)
	if after.Status.Agent.LastSeen.Equal(&before.Status.Agent.LastSeen) || after.Status.Agent.LastSeen.IsZero() {
		return
	}
	if a, err := c.readAccount(ctx, membernamespace.OfCluster(after)); err == nil && isLegacyBeat(a, after.Status.Agent) {
		c.Liveness.Beat(membernamespace.OfCluster(after).Namespace, liveness.InStatus, after.Status.Agent.LastSeen.Time)
	}
}

// ofNamespace maps the name of a member namespace to its Cluster.
func (c *Controller) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	return membernamespace.ClusterOfNamespace(ctx, c.Client, o.GetName())
}
