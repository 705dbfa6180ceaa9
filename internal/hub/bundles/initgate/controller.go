// Package initgate opens the init gates of new Clusters, one after the other.
//
// It writes initialization and the condition Initialized in the status of Clusters. Its invariant:
// gates never hold back a Cluster again after it has passed them.
package initgate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// Controller reconciles Clusters with init gates.
type Controller struct {
	controller.Deps
}

// New returns a controller. It reads everything from the cache.
func New(deps controller.Deps) *Controller { return &Controller{deps} }

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("initgate").
		Watches(&fleet.Cluster{}, controller.On(onCluster)).
		Watches(&fleet.BundleDeployment{}, controller.SkipInitial(controller.On(c.onDeployment))).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// onCluster enqueues a Cluster with waiting gates, or after another client changed their state.
func onCluster(_ context.Context, before, after *fleet.Cluster, q controller.Queue) {
	if after == nil || len(after.Spec.InitGates) == 0 && !shown(after) {
		return
	}
	if before == nil || before.Generation != after.Generation || before.Status.Namespace != after.Status.Namespace ||
		!equality.Semantic.DeepEqual(before.Status.Initialization, after.Status.Initialization) ||
		!equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(after)})
	}
}

// shown reports whether the status of a Cluster shows init gates.
func shown(cluster *fleet.Cluster) bool {
	return cluster.Status.Initialization != nil || kube.FindCondition(cluster.Status.Conditions, fleet.ConditionInitialized) != nil
}

// onDeployment enqueues the Cluster of a deployment if its next gate waits for the Bundle, or an
// open one did.
func (c *Controller) onDeployment(ctx context.Context, before, after *fleet.BundleDeployment, q controller.Queue) {
	changed := after
	if changed == nil {
		changed = before
	} else if before != nil && rollup.OnlyShown(before, after) {
		return
	}
	for _, request := range membernamespace.ClusterOfNamespace(ctx, c.Client, changed.Namespace) {
		var cluster fleet.Cluster
		err := c.Client.Get(ctx, request.NamespacedName, &cluster, client.UnsafeDisableDeepCopy)
		if err != nil || !membership.Initializing(&cluster) {
			continue // an event of the Cluster enqueues it
		}
		for _, gate := range cluster.Spec.InitGates {
			if gate.Bundle == changed.Name {
				q.Add(request)
				break
			}
		}
	}
}

// Reconcile opens gates in their order, and shows the reason why the next one is closed.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, request.NamespacedName, &cluster); err != nil || cluster.DeletionTimestamp != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployments, err := c.deployments(ctx, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	after := cluster.DeepCopy()
	describe(&after.Status, decide(&cluster, deployments), c.Clock.Now())
	if err := kube.PatchStatus(ctx, c.Client, &cluster, after); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if at := after.Status.Initialization; !equality.Semantic.DeepEqual(cluster.Status.Initialization, at) && at != nil {
		ctrl.LoggerFrom(ctx).Info("Cluster opened init gates", "opened", at.Opened, "gates", len(cluster.Spec.InitGates))
	}
	return ctrl.Result{}, nil
}

// deployments returns the deployments of the Bundles of the Cluster's gates, by the Bundle's name.
func (c *Controller) deployments(ctx context.Context, cluster *fleet.Cluster) (map[string]*fleet.BundleDeployment, error) {
	found := map[string]*fleet.BundleDeployment{}
	for _, gate := range cluster.Spec.InitGates {
		if gate.Bundle == "" || cluster.Status.Namespace == "" {
			continue
		}
		d := &fleet.BundleDeployment{}
		key := types.NamespacedName{Namespace: membership.DeliveryNamespace(cluster), Name: gate.Bundle}
		switch err := c.Client.Get(ctx, key, d, client.UnsafeDisableDeepCopy); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading BundleDeployment %s: %w", key, err)
		case d.Labels[fleet.LabelBundleNamespace] == cluster.Namespace: // else a Bundle of another workspace has the same name
			found[gate.Bundle] = d
		}
	}
	return found, nil
}
