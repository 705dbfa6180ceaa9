// Package agentbundle keeps the agents of members up to date. Each Cluster has a Bundle with the
// agent's chart, and each MemberCluster a BundleDeployment. When the settings of the hub or the
// Cluster change, the agent deploys this object and so replaces itself. Updates stay within a
// budget and continue only as long as they succeed.
//
// It writes the Bundles fleet-agent-<cluster> except their status and finalizer, the
// BundleDeployments member-agent of MemberClusters with their Content, and the condition
// AgentUpToDate. Its invariants:
//
//   - The hub sends no new version once it failed on a tenth of its trials, in more than one
//     workspace.
//   - A failure of one agent, or in one workspace, stops no other.
//   - Nothing is written without a change.
//   - Agents of other projects, and agents with the opt-out label, receive nothing.
package agentbundle

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// workers is the number of Clusters reconciled at once.
	workers = 8
	// cacheLag limits the wait for a write to reach the cache. A Bundle created and deleted at
	// once never reaches it.
	cacheLag = 10 * time.Second
)

// Controller reconciles the agents of Clusters.
type Controller struct{ *waves }

// New returns a controller.
func New(deps controller.Deps) *Controller {
	return &Controller{newWaves(deps, agentchart.Resources)}
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	ofRecord := handler.EnqueueRequestsFromMapFunc(membernamespace.ToCluster)
	return ctrl.NewControllerManagedBy(mgr).Named("agentbundle").
		For(&fleet.Cluster{}).
		Owns(&fleet.Bundle{}).
		Watches(&fleet.Bundle{}, handler.EnqueueRequestsFromMapFunc(ofName)).
		Watches(&fleet.BundleDeployment{}, handler.EnqueueRequestsFromMapFunc(c.ofDeployment)).
		Watches(&clusterv1beta1.InternalMemberCluster{}, ofRecord).
		WatchesMetadata(&corev1.ServiceAccount{}, ofRecord).
		WatchesRawSource(source.Channel(c.Liveness.Subscribe(),
			handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
				return membernamespace.ClusterOfNamespace(ctx, c.Client, o.GetName())
			}))).
		WatchesRawSource(source.Channel(c.Config.Subscribe(),
			handler.EnqueueRequestsFromMapFunc(controller.All(c.Client, &fleet.ClusterList{})))).
		WatchesRawSource(c.Kinds.Again(c.Client, &fleet.ClusterList{})).
		WatchesRawSource(source.Func(func(_ context.Context, queue controller.Queue) error {
			c.queue = queue
			return nil
		})).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// ofName enqueues the Cluster for the name of an ownerless Bundle: this Bundle may take the name of
// the agent's Bundle, or free it. The Bundle's name shortens a long Cluster name; such a Cluster is
// enqueued later.
func ofName(_ context.Context, bundle client.Object) []reconcile.Request {
	cluster, is := strings.CutPrefix(bundle.GetName(), naming.AgentBundlePrefix+"-")
	if !is || metav1.GetControllerOf(bundle) != nil {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: bundle.GetNamespace(), Name: cluster}}}
}

// Reconcile sends the agent of a Cluster its desired version once the agent is admitted, and
// updates the condition.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if c.Config.Current().Unknown {
		return ctrl.Result{}, nil // a change of the settings enqueues the Cluster
	}
	if err := c.start(ctx, c.observeAll); err != nil {
		return ctrl.Result{}, err
	}
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, request.NamespacedName, &cluster); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if cluster.UID == "" || !ours(&cluster) {
		c.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	o, err := c.observe(ctx, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	return advance(ctx, c.waves, o, c.act, c.report)
}

// observeAll observes the agents of all Clusters.
func (c *Controller) observeAll(ctx context.Context) (map[types.NamespacedName]agent, error) {
	var list fleet.ClusterList
	if err := c.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing Clusters: %w", err)
	}
	agents := make(map[types.NamespacedName]agent, len(list.Items))
	for i := range list.Items {
		cluster := &list.Items[i]
		if !ours(cluster) {
			continue
		}
		o, err := c.observe(ctx, cluster)
		if err != nil {
			return nil, err
		}
		agents[client.ObjectKeyFromObject(cluster)] = o.agent
	}
	return agents, nil
}

// ours reports whether the hub manages a Cluster, and the Cluster stays.
func ours(cluster *fleet.Cluster) bool {
	return cluster.DeletionTimestamp == nil && cluster.Labels[fleet.LabelClusterManagement] == ""
}

// ofDeployment returns the request for the Cluster of an agent's BundleDeployment.
func (c *Controller) ofDeployment(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetLabels()[fleet.LabelAgent] == "" {
		return nil
	}
	return membernamespace.ClusterOfNamespace(ctx, c.Client, o.GetNamespace())
}
