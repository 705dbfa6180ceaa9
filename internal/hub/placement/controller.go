// Package placement delivers the objects selected by a ClusterResourcePlacement or
// ResourcePlacement on the hub to the members picked by its policy. It writes Works into their
// member namespaces, and rolls up the reports of the members' agents in the placement's status.
//
// It writes one finalizer and the whole status of a placement, and Works except for their status
// and the agent's finalizer. It writes bindings for other programs, and decides nothing by them.
// Only a Work in the namespace of a member proves that the member was picked. Its invariants:
// nothing moves without a cause in the placement itself. A leaving, lost or never joined member
// gets nothing new. An unreadable object is not removed.
package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/joining/admission"
	"github.com/muster-fleet/muster/internal/hub/placement/authorization"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/decisions"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// workers is the number of placements reconciled at once. writers is the number of members
	// written to at once by each of them.
	workers, writers = 4, 16
	// statusPeriod is the shortest interval between two writes of a status.
	statusPeriod = time.Second
	// maxCacheLag is the longest expected lag of the cache behind a written Work. After it the
	// Work counts as deleted by another client.
	maxCacheLag = 5 * time.Second
)

// byParent, byInherited and byOwner are indexes of the cache. They index Works by placement,
// Works of KubeFleet's hub by placement, and copies of statuses by the UID of their placement.
const byParent, byInherited, byOwner = "parent", "inherited", "owner"

// Deps are the dependencies of the controller.
type Deps struct {
	controller.Deps
	// Dynamic and Discovery read the objects selected by placements.
	Dynamic   dynamic.Interface
	Discovery discovery.ServerResourcesInterface
	// Policies reports whether the authors of placements are known.
	Policies *admission.Checker
	// Decisions shows the picked members to other tools; nil in tests.
	Decisions *decisions.Publisher
}

// Controller reconciles placements of both kinds.
type Controller struct {
	Deps
	selector *selection.Selector
	reviewer *authorization.Reviewer
	// queue is nil until the controller starts.
	queue atomic.Pointer[controller.Queue]
	// expected are the written statuses, workWrites the written Works, runWrites the written
	// staged update runs. A decision made before the cache shows them would pick twice.
	expected, workWrites, runWrites kube.Expectations
	memory                          *memory
	metrics                         metrics
}

// New returns a controller.
func New(deps Deps) *Controller {
	c := &Controller{Deps: deps, metrics: newMetrics(), memory: newMemory(deps.Clock),
		expected: kube.Expectations{Clock: deps.Clock}, workWrites: kube.Expectations{Clock: deps.Clock, Timeout: maxCacheLag},
		runWrites: kube.Expectations{Clock: deps.Clock, Timeout: maxCacheLag}}
	c.selector = &selection.Selector{Kinds: selection.NewKinds(deps.Discovery), IsWorkspace: c.isWorkspace}
	c.selector.Watches = selection.NewWatches(deps.Dynamic, c.enqueue)
	c.reviewer = authorization.NewReviewer(deps.Client, deps.Clock)
	return c
}

// Register adds the controller to the manager.
func (c *Controller) Register(ctx context.Context, mgr ctrl.Manager) error {
	c.selector.Mapper = mgr.GetRESTMapper()
	for name, index := range map[string]struct {
		object client.Object
		key    client.IndexerFunc
	}{
		byParent:    {&placement.Work{}, indexKey(parentOf)},
		byInherited: {&placement.Work{}, indexKey(inheritedFrom)},
		byOwner:     {&placement.ClusterResourcePlacementStatus{}, func(o client.Object) []string { return []string{string(ownerOf(o))} }},
	} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, index.object, name, index.key); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.object, name, err)
		}
	}
	if err := errors.Join(c.registerRelease(mgr), c.registerKinds(mgr), c.registerEvictions(mgr), indexBindings(ctx, mgr),
		indexRuns(ctx, mgr)); err != nil {
		return err
	}
	started := source.Func(func(ctx context.Context, q controller.Queue) error {
		c.queue.Store(&q)
		c.selector.Watches.Start(ctx)
		c.selector.Watches.Use(types.NamespacedName{}, map[selection.Query]bool{optedIn: true})
		c.selector.Watches.WatchRole()
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).Named("placement").
		WatchesRawSource(started).
		For(&placement.ClusterResourcePlacement{}).
		Watches(&placement.ResourcePlacement{}, &handler.EnqueueRequestForObject{}).
		Watches(&placement.Work{}, controller.On(c.onWork)).
		Watches(&placement.ClusterResourcePlacementStatus{}, controller.On(c.onStatusCopy)).
		Watches(&placement.ClusterResourceBinding{}, controller.OnDeleted(controller.On(c.onBinding))).
		Watches(&placement.ResourceBinding{}, controller.OnDeleted(controller.On(c.onBinding))).
		Watches(&placement.ClusterResourceOverride{}, controller.On(c.onOverride)).
		Watches(&placement.ResourceOverride{}, controller.On(c.onOverride)).
		Watches(&placement.ClusterStagedUpdateRun{}, controller.On(c.onRun)).
		Watches(&placement.StagedUpdateRun{}, controller.On(c.onRun)).
		Watches(&placement.ClusterApprovalRequest{}, controller.SkipInitial(controller.On(c.onRequest))).
		Watches(&placement.ApprovalRequest{}, controller.SkipInitial(controller.On(c.onRequest))).
		Watches(&placement.ClusterStagedUpdateStrategy{}, controller.SkipInitial(controller.On(c.onStrategy))).
		Watches(&placement.StagedUpdateStrategy{}, controller.SkipInitial(controller.On(c.onStrategy))).
		Watches(&clusterv1beta1.MemberCluster{}, controller.On(c.onMemberCluster)).
		Watches(&fleet.Cluster{}, controller.On(c.onCluster)).
		Watches(&clusterv1beta1.InternalMemberCluster{}, controller.On(c.onReport)).
		WatchesRawSource(source.Channel(c.Config.Subscribe(), controller.On(c.onSettings))).
		WatchesRawSource(source.Channel(c.Decisions.Subscribe(kindCRP), controller.On(c.onDecision))).
		WatchesRawSource(source.Channel(c.Decisions.Subscribe(kindRP), controller.On(c.onDecision))).
		WatchesRawSource(c.Kinds.Again(c.Client, &placement.ClusterResourcePlacementList{}, &placement.ResourcePlacementList{})).
		WithOptions(controller.Workers(workers)).
		Complete(controller.RetryConflicts(c.Recorder, c))
}

// isWorkspace reports whether a namespace holds membership objects of the fleet, or was created
// by the hub. An error counts as yes, because the namespace may hold secrets.
func (c *Controller) isWorkspace(namespace string) bool {
	metadata := kube.CoreMetadata("Namespace") // the cache has only the hub's Namespaces
	if err := c.Client.Get(context.Background(), types.NamespacedName{Name: namespace}, metadata); !apierrors.IsNotFound(err) {
		return true
	}
	for _, list := range []client.ObjectList{&fleet.ClusterList{}, &fleet.ClusterRegistrationTokenList{}, &fleet.ClusterRegistrationList{}} {
		err := c.Client.List(context.Background(), list, client.InNamespace(namespace), client.Limit(1), client.UnsafeDisableDeepCopy)
		if err != nil || meta.LenList(list) > 0 {
			return true
		}
	}
	return false
}

// Reconcile decides the desired state of a placement and acts on it as far as possible now, or
// deletes the placement.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s, err := c.get(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		c.selector.Drop(request.NamespacedName)
		c.memory.forget(request.NamespacedName)
		c.expected.Forget(request.NamespacedName)
		c.workWrites.Forget(request.NamespacedName)
		return ctrl.Result{}, c.withoutPlacement(ctx, request.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if wait := c.expected.Await(client.ObjectKeyFromObject(s), s); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // an event of the cache enqueues it earlier
	}
	current, wait, err := c.currentWorks(ctx, s.key)
	if err != nil || wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, err // an event of the cache enqueues it earlier
	}
	if s.GetDeletionTimestamp() != nil {
		return c.reconcileDelete(ctx, s, current)
	}
	if s, err = c.addFinalizer(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if definition, err := c.worksDefinitionDeleted(ctx, s, current); err != nil || definition != "" {
		return ctrl.Result{}, errors.Join(err, c.reportKept(ctx, s, definition)) // no member may be picked meanwhile
	}
	runs, wait, err := c.runs(ctx, s.key)
	if err != nil || wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, err // an event of the cache enqueues it earlier
	}
	began := c.Clock.Now()
	defer func() { c.memory.update(s.key, func(p *placementMemory) { p.took = c.Clock.Since(began) }) }()
	o, err := c.observe(ctx, s, current, runs)
	if errors.Is(err, errNotListed) {
		return ctrl.Result{RequeueAfter: time.Second}, nil // the watch enqueues all placements earlier
	}
	if err != nil || o.selected.Waiting {
		return ctrl.Result{}, err // the unlisted watch enqueues the placement
	}
	if wait, err := c.observeKubeFleet(ctx, s, &o); err != nil || wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, err // an event of the cache enqueues it earlier
	}
	return c.rollOut(ctx, s, o)
}

// rollOut decides on the observation, acts on the decision, and reports it.
func (c *Controller) rollOut(ctx context.Context, s genericPlacement, o observed) (ctrl.Result, error) {
	now := c.Clock.Now()
	early := c.memory.nextReport(s.key).Sub(now)
	d := c.measuredDecide(o)
	if definition, err := c.inputDefinitionDeleted(ctx, o, d); err != nil || definition != "" {
		// envelopes and overrides deleted with their definition still count
		return ctrl.Result{}, errors.Join(err, c.reportKept(ctx, s, definition))
	}
	changed := o.staging == nil && d.desired.hash != o.before.ResourceHash && o.before.ResourceHash != ""
	if wait := max(early, c.memory.nextVersion(s.key).Sub(now)); changed && wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the selected resources change faster than they are rolled out
	}
	if gone, err := c.isGone(ctx, s, o, d); gone || err != nil {
		return ctrl.Result{}, err
	}
	if changed {
		c.memory.acted(s.key)
	}
	recorded, err := c.actStaging(ctx, s, o, d)
	if err != nil {
		return ctrl.Result{}, err
	}
	failures := c.act(ctx, s, o, d)
	next := o.nextReconcile(d, now)
	if recorded { // no event reports it
		next = now
	}
	if early > 0 {
		next = kube.Earlier(next, now.Add(early))
	} else if wait, err := c.report(ctx, s, o, d, failures); err != nil {
		return ctrl.Result{}, err
	} else if wait > 0 {
		next = kube.Earlier(next, now.Add(wait))
	}
	if err := errors.Join(failures.join(), o.rightsErr); err != nil || next.IsZero() {
		return ctrl.Result{}, err
	}
	return kube.At(next, now), nil
}

// nextReconcile returns the time of the next reconcile without an event; zero if never.
func (o observed) nextReconcile(d decision, now time.Time) time.Time {
	next := d.recheckAt
	if o.leftovers != "" {
		next = kube.Earlier(next, now.Add(leftoversRetry))
	}
	return kube.Earlier(next, o.nextReview(now))
}

// report writes the status and the bindings; both show the same for each member. It returns the
// wait until the cache shows earlier writes.
func (c *Controller) report(ctx context.Context, s genericPlacement, o observed, d decision, failed failures) (time.Duration, error) {
	if err := c.updateStatus(ctx, s, o, describe(o, d, failed, c.Clock.Now())); err != nil {
		return 0, err
	}
	wait, err := c.writeBindings(ctx, s, o.bindings(s, d, failed))
	if err != nil { // nothing else waits for a binding, and the timers of the rollout must not be lost
		ctrl.LoggerFrom(ctx).Error(err, "Failed to write the bindings; the hub retries")
		wait = bindingRetry
	}
	pause, err := c.publish(ctx, s, d)
	if err != nil { // like a binding
		ctrl.LoggerFrom(ctx).Error(err, "Failed to write the PlacementDecisions; the hub retries")
		pause = bindingRetry
	}
	switch {
	case wait == 0:
		return pause, nil
	case pause == 0:
		return wait, nil
	}
	return min(wait, pause), nil
}

// updateStatus writes the copy of the status, and then the status.
func (c *Controller) updateStatus(ctx context.Context, s genericPlacement, o observed, status placement.PlacementStatus) error {
	err := c.copyStatus(ctx, s, o, &status)
	return errors.Join(err, c.patchStatus(ctx, s, status))
}

// patchStatus writes the status if it has changed.
func (c *Controller) patchStatus(ctx context.Context, s genericPlacement, status placement.PlacementStatus) error {
	after := s.copy()
	*after.status = status
	if err := kube.PatchStatus(ctx, c.Client, s.Object, after.Object); err != nil {
		return err
	}
	if after.GetResourceVersion() != s.GetResourceVersion() {
		c.memory.update(s.key, func(p *placementMemory) { p.reported = c.Clock.Now() })
		c.recordTransitions(ctx, s, after)
	}
	c.expected.Expect(client.ObjectKeyFromObject(after), after)
	return nil
}

// patchMessage writes the message of the status.
func (c *Controller) patchMessage(ctx context.Context, s genericPlacement, message string) error {
	status := *s.copy().status
	status.Message = message
	return c.patchStatus(ctx, s, status)
}

// recordTransitions logs the changed conditions and emits Events for them.
func (c *Controller) recordTransitions(ctx context.Context, before, after genericPlacement) {
	for _, current := range after.status.Conditions {
		was := cmp.Or(meta.FindStatusCondition(before.status.Conditions, current.Type), &metav1.Condition{})
		if was.Status == current.Status && was.Reason == current.Reason {
			continue
		}
		kind := corev1.EventTypeNormal
		if current.Status == "False" && current.Reason != reasons.RolloutNotStartedYet {
			kind = corev1.EventTypeWarning
		}
		ctrl.LoggerFrom(ctx).V(1).Info("Placement changed state", "condition", current.Type, "from", was.Reason,
			"to", current.Reason, "message", current.Message)
		if current.Status != "Unknown" {
			c.Recorder.Eventf(after.Object, nil, kind, current.Reason, "Place", "%s", current.Message)
		}
	}
}
