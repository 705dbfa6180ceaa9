package agentbundle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// MemberController reconciles the agents of MemberClusters. A MemberCluster has no workspace and no
// Bundles: the hub writes the BundleDeployment member-agent of its member namespace itself. The
// MemberCluster is its controller, by UID. The rollout has the same rules as for Clusters, and a
// budget of its own.
type MemberController struct{ *waves }

// NewMembers returns a controller for MemberClusters.
func NewMembers(deps controller.Deps) *MemberController {
	return &MemberController{newWaves(deps, agentchart.MemberResources)}
}

// Register adds the controller to the manager.
func (c *MemberController) Register(mgr ctrl.Manager) error {
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &clusterv1beta1.MemberCluster{},
		handler.OnlyControllerOwner())
	return ctrl.NewControllerManagedBy(mgr).Named("memberagent").
		For(&clusterv1beta1.MemberCluster{}).
		Owns(&fleet.BundleDeployment{}).
		Watches(&clusterv1beta1.InternalMemberCluster{}, owned,
			builder.WithPredicates(predicate.Funcs{UpdateFunc: membernamespace.MoreThanBeats})).
		WatchesMetadata(&corev1.ServiceAccount{}, owned).
		WatchesRawSource(source.Channel(c.Liveness.Subscribe(),
			handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
				return membernamespace.MemberClusterOfNamespace(ctx, c.Client, o.GetName())
			}))).
		WatchesRawSource(source.Channel(c.Config.Subscribe(),
			handler.EnqueueRequestsFromMapFunc(controller.All(c.Client, &clusterv1beta1.MemberClusterList{})))).
		WatchesRawSource(c.Kinds.Again(c.Client, &clusterv1beta1.MemberClusterList{})).
		WatchesRawSource(source.Func(func(_ context.Context, queue controller.Queue) error {
			c.queue = queue
			return nil
		})).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// Reconcile sends the agent of a MemberCluster its desired version once the agent is admitted, and
// updates the condition.
func (c *MemberController) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if c.Config.Current().Unknown {
		return ctrl.Result{}, nil // a change of the settings enqueues the MemberCluster
	}
	if err := c.start(ctx, c.observeAll); err != nil {
		return ctrl.Result{}, err
	}
	var mc clusterv1beta1.MemberCluster
	if err := c.Client.Get(ctx, request.NamespacedName, &mc); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if mc.UID == "" || mc.DeletionTimestamp != nil {
		c.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	o, err := c.observe(ctx, &mc)
	if err != nil {
		return ctrl.Result{}, err
	}
	return advance(ctx, c.waves, o, c.act, c.report)
}

// observeAll observes the agents of all MemberClusters.
func (c *MemberController) observeAll(ctx context.Context) (map[types.NamespacedName]agent, error) {
	var list clusterv1beta1.MemberClusterList
	if err := c.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	agents := make(map[types.NamespacedName]agent, len(list.Items))
	for i := range list.Items {
		mc := &list.Items[i]
		if mc.DeletionTimestamp != nil {
			continue
		}
		o, err := c.observe(ctx, mc)
		if err != nil {
			return nil, err
		}
		agents[client.ObjectKeyFromObject(mc)] = o.agent
	}
	return agents, nil
}
