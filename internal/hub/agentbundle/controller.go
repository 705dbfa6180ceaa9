// Package agentbundle looks after the agents of Clusters: each has a Bundle with the agent's chart, by which the agent replaces itself when the
// settings of the hub or of its Cluster change, in waves that stop by themselves when an agent does not come back.
//
// It writes the Bundles fleet-agent-<cluster> but for their status and finalizer, and the condition AgentUpToDate of Clusters. Its
// invariants: no agent is told anything new while another one that was told is overdue, unless that can only be its own concern; what did
// not change is not written; an agent that is not Muster's, or that a label keeps from the hub, is told nothing.
package agentbundle

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
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

const (
	// workers is how many Clusters are handled at once.
	workers = 8
	// waking is how many Clusters may be noted whose turn has come.
	waking = 1024
)

// Deps is what the controller needs.
type Deps struct {
	// Client reads Clusters, Bundles without their resources, reports and metadata from the cache.
	Client client.Client
	// Live reads the resources of Bundles.
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Config   *config.Controller
	Judge    *liveness.Judge
	Kinds    *served.Kinds
}

// Controller reconciles the agents of Clusters.
type Controller struct {
	Deps
	packer  packer
	table   table
	load    sync.Mutex
	loaded  bool
	written kube.Written
	// whole has what each Bundle was found to hold, by UID.
	whole sync.Map
	turns chan event.GenericEvent
}

// New returns a controller.
func New(deps Deps) *Controller {
	return &Controller{Deps: deps, turns: make(chan event.GenericEvent, waking), written: kube.Written{Clock: deps.Clock}}
}

// Register adds the controller to the manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	member := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request { return ofMember(o) })
	return ctrl.NewControllerManagedBy(mgr).Named("agentbundle").
		For(&fleet.Cluster{}).
		Owns(&fleet.Bundle{}).
		Watches(&fleet.BundleDeployment{}, handler.EnqueueRequestsFromMapFunc(c.ofDeployment)).
		Watches(&clusterv1beta1.InternalMemberCluster{}, member).
		WatchesMetadata(&corev1.ServiceAccount{}, member).
		WatchesRawSource(source.Channel(c.Judge.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.ofNamespace))).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), handler.EnqueueRequestsFromMapFunc(c.all))).
		WatchesRawSource(c.Kinds.Again(c.Client, &fleet.ClusterList{})).
		WatchesRawSource(source.Channel(c.turns, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(c)
}

// Reconcile tells the agent of a Cluster what it should be, if it is its turn, and shows how it stands.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if err := c.start(ctx); err != nil {
		return ctrl.Result{}, err
	}
	var cluster fleet.Cluster
	err := c.Client.Get(ctx, request.NamespacedName, &cluster)
	if apierrors.IsNotFound(err) {
		c.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if cluster.DeletionTimestamp != nil || cluster.Labels[fleet.LabelClusterManagement] != "" {
		c.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	s, err := c.observe(ctx, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if wait := max(s.behind, c.written.Await(&cluster)); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
	}
	now := c.Clock.Now()
	said, others := c.table.put(request.NamespacedName, s.member, now)
	c.wake(others)
	if err := c.act(ctx, s, said); err != nil {
		return ctrl.Result{}, err
	}
	if err := c.report(ctx, s, said); err != nil || said.wake.IsZero() {
		return ctrl.Result{}, err
	}
	return kube.At(said.wake, now), nil
}

// start gets to know all agents before the first of them is judged: how many are away matters to each.
func (c *Controller) start(ctx context.Context) error {
	c.load.Lock()
	defer c.load.Unlock()
	if c.loaded {
		return nil
	}
	var list fleet.ClusterList
	if err := c.Client.List(ctx, &list); err != nil {
		return fmt.Errorf("listing Clusters: %w", err)
	}
	members := make(map[types.NamespacedName]member, len(list.Items))
	for i := range list.Items {
		cluster := &list.Items[i]
		if cluster.DeletionTimestamp != nil || cluster.Labels[fleet.LabelClusterManagement] != "" {
			continue
		}
		s, err := c.observe(ctx, cluster)
		if err != nil {
			return err
		}
		members[client.ObjectKeyFromObject(cluster)] = s.member
	}
	c.table.fill(members)
	c.loaded = true
	return nil
}

// forget drops a Cluster that is gone, and its Bundle with it: others may have waited for its agent.
func (c *Controller) forget(key types.NamespacedName) { c.wake(c.table.drop(key, c.Clock.Now())) }

// wake has Clusters looked at for which the plan has changed.
func (c *Controller) wake(keys []types.NamespacedName) {
	for _, key := range keys {
		c.turns <- event.GenericEvent{Object: &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}}
	}
}

func ofMember(o client.Object) []reconcile.Request {
	key, ok := membership.RecordOf(o)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// ofDeployment leads from the deployment of an agent to its Cluster.
func (c *Controller) ofDeployment(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetLabels()[fleet.LabelAgent] == "" {
		return nil
	}
	var bundle fleet.Bundle
	key := types.NamespacedName{Namespace: o.GetLabels()[fleet.LabelBundleNamespace], Name: o.GetName()}
	if err := c.Client.Get(ctx, key, &bundle); err != nil {
		if !apierrors.IsNotFound(err) {
			ctrl.LoggerFrom(ctx).Error(err, "Looking for the Bundle of an agent", "bundle", key)
		}
		return nil // the event of its Bundle wakes the Cluster
	}
	if owner := metav1.GetControllerOf(&bundle); owner != nil {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: owner.Name}}}
	}
	return nil
}

// ofNamespace leads from a member namespace to its Cluster.
func (c *Controller) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	namespace := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.Client.Get(ctx, types.NamespacedName{Name: o.GetName()}, namespace); err != nil {
		return nil // the member has left
	}
	return ofMember(namespace)
}

// all leads from a change of the settings to every Cluster.
func (c *Controller) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var list fleet.ClusterList
	if err := c.Client.List(ctx, &list); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing Clusters after a change of settings")
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return requests
}
