package placement

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/kube"
)

// addFinalizer returns the placement with the hub's finalizer.
func (c *Controller) addFinalizer(ctx context.Context, s genericPlacement) (genericPlacement, error) {
	after := s.copy()
	if !controllerutil.AddFinalizer(after.Object, placement.FinalizerPlacement) {
		return s, nil
	}
	if err := kube.Patch(ctx, c.Client, s.Object, after.Object); err != nil {
		return s, fmt.Errorf("adding the finalizer to %s: %w", s, err)
	}
	return after, nil
}

// reconcileDelete deletes the Works of a placement, and removes the hub's finalizer when the last of them is gone.
func (c *Controller) reconcileDelete(ctx context.Context, s genericPlacement, current map[string]*currentWorks) (ctrl.Result, error) {
	c.selector.Drop(s.key)
	if !controllerutil.ContainsFinalizer(s.Object, placement.FinalizerPlacement) {
		return ctrl.Result{}, nil
	}
	if definition, err := c.Kinds.Deleted(ctx, s.Object, &placement.Work{}); err != nil || definition != "" {
		return ctrl.Result{}, errors.Join(err, c.reportKept(ctx, s, definition))
	}
	inherited, err := c.inheritedWorks(ctx, s.key, math.MaxInt)
	if err == nil {
		err = c.takeOver(ctx, s.key, inherited)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(inherited) > 0 {
		return ctrl.Result{RequeueAfter: maxCacheLag}, nil // an event of the cache comes earlier
	}
	if len(current) > 0 {
		return c.deleteAllWorks(ctx, s, current)
	}
	if left := finalizersLeft(s); left != "" { // without its own finalizer the hub could not report them any more
		return ctrl.Result{}, c.patchMessage(ctx, s, "removed from all members; "+left)
	}
	versions, err := c.versions(ctx, s)
	if err == nil {
		err = c.deleteVersions(ctx, s, versions)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	after := s.copy()
	controllerutil.RemoveFinalizer(after.Object, placement.FinalizerPlacement)
	if err := kube.Patch(ctx, c.Client, s.Object, after.Object); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("removing the finalizer of %s: %w", s, err)
	}
	ctrl.LoggerFrom(ctx).Info("Placement removed")
	return ctrl.Result{}, nil
}

// deleteAllWorks deletes Works and reports which members have yet to answer.
func (c *Controller) deleteAllWorks(ctx context.Context, s genericPlacement, current map[string]*currentWorks) (ctrl.Result, error) {
	members, err := c.members(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	byNamespace := map[string]*scheduling.Member{}
	for _, m := range members {
		byNamespace[m.Namespace] = m
	}
	var targets []target
	message := ""
	for namespace, w := range current {
		t := target{namespace: namespace, name: namespace}
		if m := byNamespace[namespace]; m != nil {
			t.name = m.Name
			if unreachable(m) {
				message = fmt.Sprintf("; %s: %s; it is waited for until it is back, or its record is deleted", t.name, m.Obstacle.Message)
			}
		}
		for _, work := range w.works {
			applied := meta.FindStatusCondition(work.Status.Conditions, placement.ConditionApplied)
			if work.DeletionTimestamp != nil && applied != nil && applied.Status == metav1.ConditionFalse {
				message = fmt.Sprintf("; %s: %s", t.name, applied.Message)
			}
		}
		targets = append(targets, t)
	}
	slices.SortFunc(targets, byName)
	if err := c.act(ctx, s, observed{current: current}, decision{plan: rolloutPlan{remove: targets, cause: removal.SourceDeleted}}).join(); err != nil {
		return ctrl.Result{}, err
	}
	if early := c.memory.nextReport(s.key).Sub(c.Clock.Now()); early > 0 {
		return ctrl.Result{RequeueAfter: early}, nil
	}
	return ctrl.Result{}, c.patchMessage(ctx, s, fmt.Sprintf("being removed: waiting for the agents of %d members (%s)%s", len(targets),
		listNames(targets), message))
}
