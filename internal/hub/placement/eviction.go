package placement

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/kube"
)

// evictor executes ClusterResourcePlacementEvictions: each once, and one at a time, because two of
// them must not use one budget twice. It writes the status of an eviction, and marks and deletes
// the Works of its member. The placement may pick the member again.
type evictor struct {
	*Controller
	// expected is the evictor's own: an eviction may have the name of a placement.
	expected *kube.Expectations
}

// registerEvictions adds the controller of evictions to the manager.
func (c *Controller) registerEvictions(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("eviction").
		For(&placement.ClusterResourcePlacementEviction{}).
		WithOptions(controller.Workers(1)).
		Complete(controller.RetryConflicts(c.Recorder, evictor{c, &kube.Expectations{Clock: c.Clock}}))
}

// Reconcile decides on an eviction once, and executes it.
func (e evictor) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var eviction placement.ClusterResourcePlacementEviction
	if err := e.Client.Get(ctx, request.NamespacedName, &eviction); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if eviction.DeletionTimestamp != nil || completed(&eviction) {
		return ctrl.Result{}, nil
	}
	if wait := e.expected.Await(client.ObjectKeyFromObject(&eviction), &eviction); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // an event of the cache enqueues it earlier
	}
	o, wait, err := e.observe(ctx, &eviction)
	if err != nil || wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	valid, executed := decideEviction(o)
	if err := e.setCondition(ctx, &eviction, placement.ConditionEvictionValid, valid); err != nil || valid.status != metav1.ConditionTrue {
		return ctrl.Result{}, err
	}
	if executed.status == metav1.ConditionTrue {
		if err := e.evict(ctx, &eviction, o.works); err != nil {
			return ctrl.Result{}, err
		}
		ctrl.LoggerFrom(ctx).Info("Placement evicted from a member",
			"placement", eviction.Spec.PlacementName, "member", eviction.Spec.ClusterName, "works", len(o.works))
	}
	return ctrl.Result{}, e.setCondition(ctx, &eviction, placement.ConditionEvictionExecuted, executed)
}

// completed reports whether an eviction was executed, or never can be.
func completed(eviction *placement.ClusterResourcePlacementEviction) bool {
	return meta.IsStatusConditionFalse(eviction.Status.Conditions, placement.ConditionEvictionValid) ||
		meta.FindStatusCondition(eviction.Status.Conditions, placement.ConditionEvictionExecuted) != nil
}

// observedEviction is the input of decideEviction.
type observedEviction struct {
	uid  types.UID
	spec placement.PlacementEvictionSpec
	// wasValid: its condition Valid is True, and its Works may already be gone.
	wasValid bool
	// placement is nil if it does not exist.
	placement         *placement.PlacementSpec
	placementDeleting bool
	// picked: the status of the placement lists the member as picked.
	picked bool
	// works are the member's Works, except Works created after the eviction. worksDeleting: all
	// of them are being deleted.
	works         []*placement.Work
	worksDeleting bool
	// available: the objects on the member work. totalAvailable of total members with the
	// placement are available.
	available             bool
	totalAvailable, total int
	budget                *placement.PlacementDisruptionBudgetSpec
	// drains: the eviction moves the placement, from a cordoned member to another one. stays is the
	// reason why it cannot.
	drains bool
	// paused: a user has paused the placement or the member.
	paused bool
	stays  string
}

// observe gathers the input of a decision. It returns the longest wait until the cache shows
// earlier writes of the placement.
func (e evictor) observe(ctx context.Context,
	eviction *placement.ClusterResourcePlacementEviction) (observedEviction, time.Duration, error) {
	o := observedEviction{uid: eviction.UID, spec: eviction.Spec}
	o.wasValid = meta.IsStatusConditionTrue(eviction.Status.Conditions, placement.ConditionEvictionValid)
	key := types.NamespacedName{Name: eviction.Spec.PlacementName}
	s, err := e.get(ctx, key)
	if apierrors.IsNotFound(err) {
		return o, 0, e.checkDefinition(ctx, &placement.ClusterResourcePlacement{})
	} else if err != nil {
		return o, 0, fmt.Errorf("reading ClusterResourcePlacement %s: %w", key.Name, err)
	}
	if wait := e.Controller.expected.Await(key, s); wait > 0 { // its status may still list unpicked members
		return o, wait, nil
	}
	o.placement, o.placementDeleting, o.picked = s.spec, s.GetDeletionTimestamp() != nil, scheduledMembers(s.status)[eviction.Spec.ClusterName]
	o.paused = membership.Paused(s)
	current, wait, err := e.currentWorks(ctx, key)
	if err != nil || wait > 0 {
		return o, wait, err
	}
	members, err := e.members(ctx)
	if err != nil {
		return o, 0, err
	}
	if o.drains = eviction.Annotations[placement.AnnotationDrain] == "true"; o.drains {
		o.stays = e.stays(s.spec, members, current, eviction.Spec.ClusterName)
	}
	settled, unsettled := o.count(e.memory, eviction, members, current, e.Clock.Now())
	if o.budget, err = e.budget(ctx, key); err != nil {
		return o, 0, err
	}
	if !settled.IsZero() && (o.budget != nil || o.drains) && (unsettled || o.blocked() != "") {
		// until then the protected members are unknown: the hub may just have started
		return o, max(settled.Sub(e.Clock.Now()), time.Second), nil
	}
	return o, 0, nil
}

// budget returns the disruption budget of a placement; nil if there is none.
func (e evictor) budget(ctx context.Context, of types.NamespacedName) (*placement.PlacementDisruptionBudgetSpec, error) {
	var budget placement.ClusterResourcePlacementDisruptionBudget
	switch err := e.Client.Get(ctx, of, &budget); {
	case apierrors.IsNotFound(err):
		return nil, e.checkDefinition(ctx, &budget)
	case err != nil:
		return nil, fmt.Errorf("reading ClusterResourcePlacementDisruptionBudget %s: %w", of.Name, err)
	}
	return &budget.Spec, nil
}

// count counts the members with the placement. It returns when a report becomes certain, zero if
// all are; unsettled: the report of the evicted member is not certain yet.
func (o *observedEviction) count(memory *memory, eviction *placement.ClusterResourcePlacementEviction, members []*scheduling.Member,
	current map[string]*currentWorks, now time.Time) (settled time.Time, unsettled bool) {
	isUnreachable, namespace := map[string]bool{}, ""
	for _, m := range members {
		isUnreachable[m.Namespace] = unreachable(m)
		if m.Name == eviction.Spec.ClusterName {
			namespace, o.paused = m.Namespace, o.paused || m.Paused
		}
	}
	for holder, w := range current {
		evicted := memory.evicted(w)
		reported := w.status(memory.appliedSince, unavailablePeriod(o.placement), now)
		available := !isUnreachable[holder] && !evicted && reported.ready
		if !isUnreachable[holder] && !evicted && reported.works && !reported.ready {
			settled, unsettled = kube.Earlier(settled, reported.readyAt), unsettled || holder == namespace
		}
		o.total++
		if available {
			o.totalAvailable++
		}
		if holder == namespace {
			o.available, o.worksDeleting, o.works = available, w.deleting || evicted, notAfter(eviction, w.works)
		}
	}
	return settled, unsettled
}

// checkDefinition returns an error if a missing object may be gone because the definition of its
// kind is being deleted.
func (e evictor) checkDefinition(ctx context.Context, kind client.Object) error {
	definition, err := e.Kinds.Deleted(ctx, kind)
	if err == nil && definition != "" {
		return fmt.Errorf("the CustomResourceDefinition %s is gone or being deleted, and evictions wait: install the fleet-crd chart", definition)
	}
	return err
}

// notAfter returns the Works not created after the eviction. The eviction may have been executed
// already on earlier ones.
func notAfter(eviction client.Object, works []*placement.Work) (older []*placement.Work) {
	created := eviction.GetCreationTimestamp()
	for _, work := range works {
		if !created.Before(&work.CreationTimestamp) {
			older = append(older, work)
		}
	}
	return older
}

// evict marks Works as evicted, to prevent a new write before they are gone, and deletes them.
func (e evictor) evict(ctx context.Context, eviction *placement.ClusterResourcePlacementEviction, works []*placement.Work) error {
	for _, work := range works {
		if work.DeletionTimestamp == nil && work.Annotations[placement.AnnotationEvicted] != string(eviction.UID) {
			marked := work.DeepCopy()
			metav1.SetMetaDataAnnotation(&marked.ObjectMeta, placement.AnnotationEvicted, string(eviction.UID))
			if err := kube.Patch(ctx, e.Client, work, marked); err != nil {
				return fmt.Errorf("marking Work %s/%s as evicted: %w", work.Namespace, work.Name, err)
			}
		}
		e.memory.setEvicted(work)
	}
	return e.deleteWorks(ctx, works, removal.Evicted)
}

// setCondition writes a condition of an eviction, if it is new.
func (e evictor) setCondition(ctx context.Context, eviction *placement.ClusterResourcePlacementEviction, kind string, c condition) error {
	before := eviction.DeepCopy()
	c.message = clip(c.message)
	if !meta.SetStatusCondition(&eviction.Status.Conditions, c.as(kind, eviction.Generation, e.Clock.Now())) {
		return nil
	}
	if err := kube.PatchStatus(ctx, e.Client, before, eviction); err != nil {
		return err
	}
	e.expected.Expect(client.ObjectKeyFromObject(eviction), eviction.DeepCopy())
	if c.status == metav1.ConditionFalse {
		e.Recorder.Eventf(eviction, nil, corev1.EventTypeWarning, c.reason, "Evict", "%s", c.message)
	} else if kind == placement.ConditionEvictionExecuted {
		e.Recorder.Eventf(eviction, nil, corev1.EventTypeNormal, c.reason, "Evict", "%s", c.message)
	}
	return nil
}
