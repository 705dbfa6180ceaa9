package placement

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
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

// reconcileDelete deletes the Works of a placement, and removes the hub's finalizer after the
// last of them is gone.
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
		return ctrl.Result{RequeueAfter: maxCacheLag}, nil // an event of the cache enqueues it earlier
	}
	if err := c.addEnvelopes(ctx, s, current); err != nil {
		return ctrl.Result{}, err
	}
	if len(current) > 0 {
		return c.deleteAllWorks(ctx, s, current)
	}
	waits, stays, err := c.removeLeftovers(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if waits != "" { // the hub does not watch all of it
		return ctrl.Result{RequeueAfter: leftoversRetry}, c.patchMessage(ctx, s, removedEverywhere+waits)
	}
	return ctrl.Result{}, c.releasePlacement(ctx, s, stays)
}

// removedEverywhere is the prefix of the message of a deleted placement that the hub keeps.
const removedEverywhere = "removed from all members; "

// releasePlacement removes the finalizers of this hub and of KubeFleet's hub from a placement. If
// other finalizers keep the placement, its message names them first: without its own finalizer
// the hub reports nothing any more.
func (c *Controller) releasePlacement(ctx context.Context, s genericPlacement, stays []string) error {
	if mayHaveVersions(s) {
		versions, err := c.versions(ctx, s)
		if err == nil {
			err = c.deleteVersions(ctx, s, versions)
		}
		if err != nil {
			return err
		}
	}
	after := s.copy()
	after.SetFinalizers(slices.DeleteFunc(after.GetFinalizers(), isPlacementFinalizer))
	others := slices.DeleteFunc(slices.Clone(after.GetFinalizers()), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents // Kubernetes removes them
	})
	message := fmt.Sprintf("%sfinalizer %s keeps it, which is neither Muster's nor KubeFleet's: the program that set it has to remove it",
		removedEverywhere,
		strings.Join(others, ", "))
	if len(others) > 0 && s.status.Message != message {
		return c.patchMessage(ctx, s, message) // the resulting event enqueues it again
	}
	if err := kube.Patch(ctx, c.Client, s.Object, after.Object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizers of %s: %w", s, err)
	}
	ctrl.LoggerFrom(ctx).Info("Placement removed")
	return c.reportStays(ctx, s, stays)
}

// mayHaveVersions reports whether versions of a deleted placement may be stored. A first spec of
// another type than External has none. metadata.generation counts the changes of the spec, and
// the deletion as one more.
func mayHaveVersions(s genericPlacement) bool {
	const firstAndDeleted = 2
	return isStaged(s.spec) || s.GetGeneration() > firstAndDeleted
}

// isPlacementFinalizer reports whether a finalizer of a placement belongs to this hub or to
// KubeFleet's hub.
func isPlacementFinalizer(name string) bool {
	return name == placement.FinalizerPlacement || membernamespace.IsKubeFleetFinalizer(name)
}

// deleteAllWorks deletes Works and reports the members without an answer so far.
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
	var quarantined []string
	message := ""
	for namespace, w := range current {
		t := target{namespace: namespace, name: namespace}
		if m := byNamespace[namespace]; m != nil {
			if t.name = m.Name; m.Quarantined {
				quarantined = append(quarantined, m.Name)
				continue // the end of the quarantine is an event
			}
			if unreachable(m) {
				message = fmt.Sprintf("; %s: %s; the hub waits until it is back or deleted", t.name, m.Obstacle.Message)
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
	if err := c.act(ctx, s, observed{current: current},
		decision{plan: rolloutPlan{remove: targets, cause: removal.SourceDeleted}}).join(); err != nil {
		return ctrl.Result{}, err
	}
	if early := c.memory.nextReport(s.key).Sub(c.Clock.Now()); early > 0 {
		return ctrl.Result{RequeueAfter: early}, nil
	}
	if len(quarantined) > 0 {
		slices.Sort(quarantined)
		message += fmt.Sprintf("; the quarantined member %s keeps the placed objects until its quarantine ends: muster quarantine %s --undo",
			list(quarantined), quarantined[0])
	}
	return ctrl.Result{}, c.patchMessage(ctx, s, fmt.Sprintf("being removed: waiting for the agents of %d members (%s)%s", len(targets),
		listNames(targets), message))
}
