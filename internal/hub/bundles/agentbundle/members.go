package agentbundle

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
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
	"github.com/muster-fleet/muster/internal/kube"
)

// MemberController reconciles the agents of MemberClusters. A MemberCluster has no workspace and no
// Bundles: the hub writes the BundleDeployment member-agent of its member namespace itself. The
// MemberCluster is its controller, by UID. The rollout has the same rules as for Clusters, and a
// budget of its own.
type MemberController struct {
	controller.Deps
	chart    chart
	rollout  *rollout
	expected kube.Expectations
	// load guards loaded. loaded is true once the rollout knows all agents.
	load   sync.Mutex
	loaded bool
	// queue is the controller's own queue, set before the first request is reconciled.
	queue controller.Queue
}

// NewMembers returns a controller for MemberClusters.
func NewMembers(deps controller.Deps) *MemberController {
	return &MemberController{
		Deps: deps, chart: chart{resources: agentchart.MemberResources, packed: lru.New(charts)}, rollout: newRollout(),
		expected: kube.Expectations{Clock: deps.Clock, Timeout: cacheLag},
	}
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
		return ctrl.Result{}, nil // a change of the settings wakes the MemberCluster
	}
	if err := c.start(ctx); err != nil {
		return ctrl.Result{}, err
	}
	var mc clusterv1beta1.MemberCluster
	if err := c.Client.Get(ctx, request.NamespacedName, &mc); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	now := c.Clock.Now()
	if mc.UID == "" || mc.DeletionTimestamp != nil {
		c.expected.Forget(request.NamespacedName)
		c.enqueue(c.rollout.drop(request.NamespacedName, now))
		return ctrl.Result{}, nil
	}
	o, err := c.observe(ctx, &mc)
	if err != nil {
		return ctrl.Result{}, err
	}
	if wait := c.Joins.Delay(mc.CreationTimestamp.Time, now); o.deployment == nil && wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // an agent that was just installed is up to date
	}
	cached := []client.Object{&mc}
	if o.deployment != nil {
		cached = append(cached, o.deployment)
	}
	if wait := c.expected.Await(request.NamespacedName, cached...); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
	}
	decided, others := c.rollout.update(request.NamespacedName, o.agent, now)
	c.enqueue(others)
	if err := c.act(ctx, o, decided); err != nil {
		return ctrl.Result{}, err
	}
	if wait := o.reportIn(decided.state, now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if err := c.report(ctx, o, decided); err != nil || decided.wake.IsZero() {
		return ctrl.Result{}, err
	}
	return kube.At(decided.wake, now), nil
}

// start observes all agents before the first is admitted, because each admission depends on the
// number in flight.
func (c *MemberController) start(ctx context.Context) error {
	c.load.Lock()
	defer c.load.Unlock()
	if c.loaded {
		return nil
	}
	var list clusterv1beta1.MemberClusterList
	if err := c.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing MemberClusters: %w", err)
	}
	agents := make(map[types.NamespacedName]agent, len(list.Items))
	for i := range list.Items {
		mc := &list.Items[i]
		if mc.DeletionTimestamp != nil {
			continue
		}
		o, err := c.observe(ctx, mc)
		if err != nil {
			return err
		}
		agents[client.ObjectKeyFromObject(mc)] = o.agent
	}
	c.rollout.fill(agents, c.Clock.Now())
	c.loaded = true
	return nil
}

func (c *MemberController) enqueue(keys []types.NamespacedName) {
	for _, key := range keys {
		c.queue.Add(reconcile.Request{NamespacedName: key})
	}
}
