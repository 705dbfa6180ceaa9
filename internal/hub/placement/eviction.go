package placement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/kube"
)

// evictor executes ClusterResourcePlacementEvictions: each once, and one at a time, so that two
// of them do not use up one budget twice. It writes the status of an eviction, and marks and
// deletes the Works of its member. The placement may pick the member again.
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
		return ctrl.Result{RequeueAfter: wait}, nil // an event of the cache comes earlier
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
		ctrl.LoggerFrom(ctx).Info("Evicted", "placement", eviction.Spec.PlacementName, "member", eviction.Spec.ClusterName, "works", len(o.works))
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
	// wasValid: its condition Valid is True, so that its Works may be gone already.
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
	current, wait, err := e.currentWorks(ctx, key)
	if err != nil || wait > 0 {
		return o, wait, err
	}
	members, err := e.members(ctx)
	if err != nil {
		return o, 0, err
	}
	isUnreachable, namespace := map[string]bool{}, ""
	for _, m := range members {
		isUnreachable[m.Namespace] = unreachable(m)
		if m.Name == eviction.Spec.ClusterName {
			namespace = m.Namespace
		}
	}
	now, settled, unsettled := e.Clock.Now(), time.Time{}, false
	for of, w := range current {
		evicted := e.memory.evicted(w)
		reported := w.status(e.memory.appliedSince, unavailablePeriod(s.spec), now)
		available := !isUnreachable[of] && !evicted && reported.ready
		if !isUnreachable[of] && !evicted && reported.works && !reported.ready {
			settled, unsettled = kube.Earlier(settled, reported.readyAt), unsettled || of == namespace
		}
		o.total++
		if available {
			o.totalAvailable++
		}
		if of == namespace {
			o.available, o.worksDeleting, o.works = available, w.deleting || evicted, notAfter(eviction, w.works)
		}
	}
	var budget placement.ClusterResourcePlacementDisruptionBudget
	switch err := e.Client.Get(ctx, key, &budget); {
	case apierrors.IsNotFound(err):
		return o, 0, e.checkDefinition(ctx, &budget)
	case err != nil:
		return o, 0, fmt.Errorf("reading ClusterResourcePlacementDisruptionBudget %s: %w", key.Name, err)
	}
	o.budget = &budget.Spec
	if !settled.IsZero() && (unsettled || o.blocked() != "") {
		return o, max(settled.Sub(now), time.Second), nil // until then the protected members are unknown: the hub may just have started
	}
	return o, 0, nil
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

// evict marks Works as evicted, so that they are not written again before they are gone, and
// deletes them.
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

// decideEviction is pure: it has neither client nor clock. Both conditions are final, and the
// second counts only if the first is True.
func decideEviction(o observedEviction) (valid, executed condition) {
	if why := o.invalid(); why != "" {
		return condition{metav1.ConditionFalse, placement.ReasonEvictionInvalid, why}, condition{}
	}
	valid = condition{metav1.ConditionTrue, placement.ReasonEvictionValid, "the eviction is valid"}
	begun := slices.ContainsFunc(o.works, func(w *placement.Work) bool { return w.Annotations[placement.AnnotationEvicted] == string(o.uid) })
	if begun || o.wasValid && len(o.works) == 0 {
		return valid, condition{metav1.ConditionTrue, placement.ReasonEvictionExecuted,
			"the resources of the placement are being removed from the member"}
	}
	if why := o.blocked(); why != "" {
		return valid, condition{metav1.ConditionFalse, placement.ReasonEvictionNotExecuted, why}
	}
	message := "the resources of the placement are being removed from the member; no ClusterResourcePlacementDisruptionBudget bounds that"
	if o.budget != nil {
		message = fmt.Sprintf("the resources of the placement are being removed from the member; before, %d of %d were available",
			o.totalAvailable, o.total)
	}
	return valid, condition{metav1.ConditionTrue, placement.ReasonEvictionExecuted, message}
}

// invalid returns the reason why there is nothing to evict; "" if there is.
func (o observedEviction) invalid() string {
	of := "ClusterResourcePlacement " + o.spec.PlacementName
	switch {
	case o.placement == nil:
		return fmt.Sprintf("there is no %s; create another eviction when there is", of)
	case o.placementDeleting:
		return of + " is being deleted, and its resources are being removed from all members"
	case placementType(o.placement) == placement.PickFixed:
		return fmt.Sprintf("%s picks members by their names (PickFixed): take %s out of its spec.policy.clusterNames", of, o.spec.ClusterName)
	case len(o.works) == 0 && !o.picked && !o.wasValid:
		return fmt.Sprintf("%s has not picked member %s", of, o.spec.ClusterName)
	}
	return ""
}

// blocked returns the reason why a valid eviction must not be executed; "" if it may be.
func (o observedEviction) blocked() string {
	if len(o.works) == 0 || o.worksDeleting {
		return fmt.Sprintf("the placement has nothing on member %s yet, or is being removed from it", o.spec.ClusterName)
	}
	if o.budget == nil || o.budget.MaxUnavailable == nil && o.budget.MinAvailable == nil {
		return ""
	}
	all := placementType(o.placement) != placement.PickN
	if all && (o.budget.MaxUnavailable != nil || o.budget.MinAvailable.Type == intstr.String) {
		return fmt.Sprintf("ClusterResourcePlacementDisruptionBudget %s is misconfigured: for a PickAll it can have only minAvailable, as a "+
			"number",
			o.spec.PlacementName)
	}
	if !o.available {
		return "" // its eviction makes nothing unavailable
	}
	desired := o.total
	if !all && o.placement.Policy.NumberOfClusters != nil {
		desired = int(*o.placement.Policy.NumberOfClusters)
	}
	bound, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(o.budget.MaxUnavailable, o.budget.MinAvailable), desired, true)
	least := bound
	if o.budget.MaxUnavailable != nil {
		least = desired - bound
	}
	if err == nil && o.totalAvailable-1 >= least {
		return ""
	}
	return fmt.Sprintf("ClusterResourcePlacementDisruptionBudget %s does not allow it: availablePlacements: %d, totalPlacements: %d",
		o.spec.PlacementName, o.totalAvailable, o.total)
}

// placementType returns the placement type of a placement.
func placementType(spec *placement.PlacementSpec) placement.PlacementType {
	if spec.Policy == nil {
		return placement.PickAll
	}
	return cmp.Or(spec.Policy.PlacementType, placement.PickAll)
}
