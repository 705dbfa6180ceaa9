package placement

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// ownerOf returns the UID of the owning ClusterResourcePlacement of a copy; "" if it has another
// owner.
func ownerOf(o client.Object) types.UID {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != kindCRP || owner.Name != o.GetName() {
		return ""
	}
	return owner.UID
}

// copyStatus writes a copy of the status into the requested namespace, deletes copies elsewhere,
// and sets the condition StatusSynced.
func (c *Controller) copyStatus(ctx context.Context, s genericPlacement, o observed, status *placement.PlacementStatus) error {
	kind := s.kind + placement.ConditionStatusSynced
	meta.RemoveStatusCondition(&status.Conditions, kind)
	if s.kind != kindCRP {
		return nil
	}
	var copies placement.ClusterResourcePlacementStatusList
	if err := c.Client.List(ctx, &copies, client.MatchingFields{byOwner: string(s.GetUID())}); err != nil {
		return fmt.Errorf("listing the copies of the status of %s: %w", s, err)
	}
	wanted := s.spec.StatusReportingScope == placement.NamespaceAccessible
	namespace, problem := "", ""
	if wanted {
		namespace, problem = copyNamespace(o)
		if o.selectionProblem() != (condition{}) && len(copies.Items) > 0 {
			namespace, problem = copies.Items[0].Namespace, "" // the selection is unknown, not empty
		}
	}
	for i := range copies.Items {
		if old := &copies.Items[i]; !wanted || problem == "" && old.Namespace != namespace {
			if err := c.Client.Delete(ctx, old, client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting the copy of the status of %s in namespace %s: %w", s, old.Namespace, err)
			}
		}
	}
	if !wanted {
		return nil
	}
	var err error
	if problem == "" {
		problem, err = c.writeCopy(ctx, s, namespace, status)
	}
	if err != nil {
		err = fmt.Errorf("writing the copy of the status in namespace %s: %w", namespace, err)
		problem = err.Error()
	}
	synced := condition{metav1.ConditionTrue, reasons.StatusSyncSucceeded, "a copy of this status is in namespace " + namespace}
	if problem != "" {
		synced = condition{metav1.ConditionFalse, reasons.StatusSyncFailed, clip(problem)}
	}
	// SetStatusCondition keeps the time of an unchanged condition.
	if before := meta.FindStatusCondition(s.status.Conditions, kind); before != nil {
		status.Conditions = append(status.Conditions, *before)
	}
	meta.SetStatusCondition(&status.Conditions, synced.as(kind, o.generation, c.Clock.Now()))
	return err
}

// copyNamespace returns the only Namespace selected by a placement, or a problem.
func copyNamespace(o observed) (name, problem string) {
	count := 0
	for _, r := range o.selected.Objects {
		if kind := r.GroupVersionKind(); kind.Group == "" && kind.Kind == "Namespace" {
			name = r.GetName()
			count++
		}
	}
	if count != 1 {
		return "", fmt.Sprintf("spec.statusReportingScope NamespaceAccessible needs a placement that selects exactly one Namespace: this one "+
			"selects %d",
			count)
	}
	return name, ""
}

// writeCopy creates the copy or updates the differences. An object of the same name with another
// owner stays unchanged.
func (c *Controller) writeCopy(ctx context.Context, s genericPlacement, namespace string,
	status *placement.PlacementStatus) (string, error) {
	key := types.NamespacedName{Namespace: namespace, Name: s.GetName()}
	before := &placement.ClusterResourcePlacementStatus{}
	if err := c.Client.Get(ctx, key, before); apierrors.IsNotFound(err) {
		created := &placement.ClusterResourcePlacementStatus{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, SourceStatus: *status.DeepCopy(),
			LastUpdatedTime: metav1.NewTime(c.Clock.Now()),
		}
		if err := controllerutil.SetControllerReference(s.Object, created, c.Client.Scheme()); err != nil {
			return "", err
		}
		if err := c.Client.Create(ctx, created, kube.FieldOwner); !apierrors.IsAlreadyExists(err) {
			return "", err
		}
		if err := c.Live.Get(ctx, key, before); err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	if ownerOf(before) != s.GetUID() {
		return fmt.Sprintf("namespace %s has a ClusterResourcePlacementStatus %s that is not of this placement: delete it", namespace, key.Name),
			nil
	}
	after := before.DeepCopy()
	after.SourceStatus = *status.DeepCopy()
	if patch, err := client.MergeFrom(before).Data(after); err != nil || string(patch) == "{}" {
		return "", err
	}
	after.LastUpdatedTime = metav1.NewTime(c.Clock.Now())
	return "", kube.Patch(ctx, c.Client, before, after)
}
