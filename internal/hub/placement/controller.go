// Package placement brings what a ClusterResourcePlacement or ResourcePlacement selects on the hub to the members that its policy picks: it
// writes Works into their member namespaces and rolls up in the placement's status what the members' agents answer.
//
// It writes one finalizer and all of the status of a placement, and of Works everything but the status and the agent's finalizer. A
// member holds a placement if there is a Work: that is the only record of who was picked. Its invariants: nothing moves without a cause
// in the placement itself; a member that leaves, is lost or has never joined gets nothing new; what cannot be read is not removed.
package placement

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/hub/served"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// workers is how many placements are handled at once, writers how many Works each of them writes at once.
	workers, writers = 4, 16
	// gather is how long events are collected before a placement is looked at: many members answer at the same time.
	gather = 50 * time.Millisecond
	// statusPeriod is the least time between two writes of a status.
	statusPeriod = time.Second
	// byParent indexes Works by their placement.
	byParent = "parent"
)

// Deps is what the controller needs.
type Deps struct {
	// Client reads placements, Works without their manifests, and the records of members from the cache.
	Client client.Client
	// Live reads what is not cached.
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Judge    *liveness.Judge
	// Dynamic and Discovery read what placements select.
	Dynamic   dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	Kinds     *served.Kinds
}

// Controller reconciles placements of both kinds.
type Controller struct {
	Deps
	selector *selection.Selector
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
	written  kube.Written
	ahead    ahead
	gauges   gauges

	mu       sync.Mutex
	policies map[types.NamespacedName]policy
	reported map[types.NamespacedName]time.Time
	applied  map[types.UID]application
}

// policy is a compiled policy, for one generation of its placement.
type policy struct {
	uid        types.UID
	generation int64
	compiled   *scheduling.Policy
	err        error
}

// New returns a controller.
func New(deps Deps) *Controller {
	c := &Controller{
		Deps: deps, gauges: newGauges(), written: kube.Written{Clock: deps.Clock},
		policies: map[types.NamespacedName]policy{}, reported: map[types.NamespacedName]time.Time{}, applied: map[types.UID]application{},
	}
	c.selector = &selection.Selector{Kinds: selection.NewKinds(deps.Discovery), Workspace: c.workspace}
	c.selector.Watches = selection.NewWatches(deps.Dynamic, c.wake)
	return c
}

// Register adds the controller to the manager.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	c.selector.Mapper = mgr.GetRESTMapper()
	index := func(o client.Object) []string {
		if of, ok := parentOf(o); ok {
			return []string{of.String()}
		}
		return nil
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &placement.Work{}, byParent, index); err != nil {
		return fmt.Errorf("indexing Works: %w", err)
	}
	started := source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		c.queue = queue
		c.selector.Watches.Start(ctx)
		c.selector.Watches.Use(types.NamespacedName{}, map[selection.Query]bool{optedIn: true})
		return nil
	})
	if err := c.registerRelease(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("placement").
		WatchesRawSource(started).
		For(&placement.ClusterResourcePlacement{}).
		Watches(&placement.ResourcePlacement{}, &handler.EnqueueRequestForObject{}).
		Watches(&placement.Work{}, c.onWork()).
		Watches(&clusterv1beta1.MemberCluster{}, c.onMemberCluster()).
		Watches(&fleet.Cluster{}, c.onCluster()).
		Watches(&clusterv1beta1.InternalMemberCluster{}, handler.Funcs{UpdateFunc: c.onReport}).
		Watches(kube.Metadata(served.DefinitionKind), c.onKind()).
		WatchesRawSource(c.Kinds.Again(c.Client, &placement.ClusterResourcePlacementList{}, &placement.ResourcePlacementList{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(c)
}

// workspace says whether a namespace holds records of the fleet, or is one that the hub made.
func (c *Controller) workspace(namespace string) bool {
	made := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace")) // the cache holds no others
	if err := c.Client.Get(context.Background(), types.NamespacedName{Name: namespace}, made); !apierrors.IsNotFound(err) {
		return true
	}
	for _, list := range []client.ObjectList{&fleet.ClusterList{}, &fleet.ClusterRegistrationTokenList{}, &fleet.ClusterRegistrationList{}} {
		err := c.Client.List(context.Background(), list, client.InNamespace(namespace), client.Limit(1), client.UnsafeDisableDeepCopy)
		if err != nil || count(list) > 0 {
			return true // rather nothing than a secret
		}
	}
	return false
}

func count(list client.ObjectList) int {
	switch l := list.(type) {
	case *fleet.ClusterList:
		return len(l.Items)
	case *fleet.ClusterRegistrationTokenList:
		return len(l.Items)
	case *fleet.ClusterRegistrationList:
		return len(l.Items)
	}
	return 0
}

// Reconcile decides what a placement is to be and does what may be done of it now, or removes it.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := c.read(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		c.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if wait := c.written.Await(s); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
	}
	holdings, err := c.holdings(ctx, s.key)
	if err != nil {
		return ctrl.Result{}, err
	}
	if wait := c.ahead.of(s.key, holdings, c.Clock.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
	}
	if s.GetDeletionTimestamp() != nil {
		return c.remove(ctx, s, holdings)
	}
	if s, err = c.claim(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if definition, err := c.undefined(ctx, s, holdings); err != nil || definition != "" {
		return ctrl.Result{}, errors.Join(err, c.keep(ctx, s, definition)) // who was picked must not change meanwhile
	}
	o, err := c.observe(ctx, s, holdings)
	if err != nil || o.selected.Waiting {
		return ctrl.Result{}, err // its answer wakes it
	}
	now := c.Clock.Now()
	early := c.nextReport(s.key).Sub(now)
	d := c.timed(o)
	if early > 0 && d.cargo.hash != o.before.ResourceHash && o.before.ResourceHash != "" {
		return ctrl.Result{RequeueAfter: early}, nil // what is selected changes faster than it is rolled out
	}
	failures := c.act(ctx, s, o, d)
	again := d.wake
	if early > 0 {
		again = sooner(again, now.Add(early))
	} else if err := c.report(ctx, s, describe(o, d, failures, now)); err != nil {
		return ctrl.Result{}, err
	}
	if err := failures.any(); err != nil {
		return ctrl.Result{}, err
	}
	if again.IsZero() {
		return ctrl.Result{}, nil
	}
	return kube.At(again, now), nil
}

func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// forget drops what is remembered of a placement that is gone.
func (c *Controller) forget(key types.NamespacedName) {
	c.selector.Drop(key)
	c.ahead.forget(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.policies, key)
	delete(c.reported, key)
}

// nextReport is when the status of a placement may be written next.
func (c *Controller) nextReport(key types.NamespacedName) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reported[key].Add(statusPeriod)
}

// report writes the status, if it is news.
func (c *Controller) report(ctx context.Context, s subject, status placement.PlacementStatus) error {
	after := s.copy()
	*after.status = status
	if err := kube.PatchStatus(ctx, c.Client, s.Object, after.Object); err != nil {
		return err
	}
	if after.GetResourceVersion() != s.GetResourceVersion() {
		c.mu.Lock()
		c.reported[s.key] = c.Clock.Now()
		c.mu.Unlock()
		c.announce(ctx, s, after)
	}
	c.written.Store(after)
	return nil
}

// announce tells of conditions that changed, after they were written.
func (c *Controller) announce(ctx context.Context, before, after subject) {
	for _, is := range after.status.Conditions {
		was := meta.FindStatusCondition(before.status.Conditions, is.Type)
		if was != nil && was.Status == is.Status && was.Reason == is.Reason {
			continue
		}
		kind := corev1.EventTypeNormal
		if is.Status == "False" && is.Reason != reasonRolloutWaits {
			kind = corev1.EventTypeWarning
		}
		from := ""
		if was != nil {
			from = was.Reason
		}
		ctrl.LoggerFrom(ctx).V(1).Info("Placement changed state", "condition", is.Type, "from", from, "to", is.Reason, "message", is.Message)
		if is.Status != "Unknown" {
			c.Recorder.Eventf(after.Object, nil, kind, is.Reason, "Place", "%s", is.Message)
		}
	}
}
