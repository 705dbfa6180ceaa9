package placement

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
	"github.com/muster-fleet/muster/internal/hub/placement/staged"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// actStaging stores a version, deletes surplus versions, and writes the runs. It reports whether
// the versions have changed, because no event shows it.
func (c *Controller) actStaging(ctx context.Context, s genericPlacement, o observed, d decision) (changed bool, err error) {
	var old []version
	switch {
	case o.staging != nil:
		old = surplus(o.staging.versions, s.spec.RevisionHistoryLimit, usedVersions(o.runs))
	case d.problem == (condition{}) && len(s.status.ResourceIndexes) > 0: // the hub rolls it out itself now
		if old, err = c.versions(ctx, s); err != nil {
			return false, err
		}
	}
	if d.record != nil {
		if err := c.recordVersion(ctx, s, *d.record, o.staging.selected); err != nil {
			return false, err
		}
		c.memory.acted(s.key)
	}
	if err := c.deleteVersions(ctx, s, old); err != nil {
		return false, err
	}
	return d.record != nil || o.staging != nil && len(old) > 0, c.writeRuns(ctx, s, d)
}

// writeRuns writes the decisions on the runs of a placement.
func (c *Controller) writeRuns(ctx context.Context, s genericPlacement, d decision) error {
	for _, r := range d.runs {
		if err := c.writeRun(ctx, s.key, r.run, r.Decision); err != nil {
			return err
		}
	}
	return nil
}

// writeRun writes the decision on a run: first its approval requests, then its status.
func (c *Controller) writeRun(ctx context.Context, key client.ObjectKey, before genericRun, d staged.Decision) error {
	for _, approval := range d.Create {
		if err := c.createRequest(ctx, before, approval); err != nil {
			return err
		}
	}
	for _, name := range d.Accept {
		if err := c.acceptRequest(ctx, before, name); err != nil {
			return err
		}
	}
	after := before.copy()
	*after.status = d.Status
	if err := kube.PatchStatus(ctx, c.Client, before.Object, after.Object); err != nil {
		return err
	}
	c.runWrites.Expect(key, after.Object)
	c.recordRun(ctx, before, after)
	return nil
}

// createRequest creates an approval request. If an object of this name exists, the cache shows it
// soon.
func (c *Controller) createRequest(ctx context.Context, r genericRun, approval staged.Approval) error {
	request := updaterun.NewApprovalRequest(r.GetNamespace(), approval.Name)
	request.SetLabels(map[string]string{
		fleet.LabelManaged: "true", placement.LabelLatestApproval: "true", placement.LabelTaskType: approval.Task,
		placement.LabelTargetUpdateRun: naming.SafeConcat(r.GetName()), placement.LabelTargetStage: approval.Stage,
	})
	request.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: placement.GroupVersion.String(), Kind: r.kind, Name: r.GetName(), UID: r.GetUID(), Controller: new(true),
	}})
	*request.Spec = placement.ApprovalRequestSpec{TargetUpdateRun: r.GetName(), TargetStage: approval.Stage}
	if err := c.Client.Create(ctx, request.Object, kube.FieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the approval request %s: %w", approval.Name, err)
	}
	return nil
}

// acceptRequest marks an approval request as accepted.
func (c *Controller) acceptRequest(ctx context.Context, r genericRun, name string) error {
	request := updaterun.NewApprovalRequest(r.GetNamespace(), name)
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(request), request.Object)
	if err == nil {
		before := request.DeepCopyObject().(client.Object)
		meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
			Type: placement.ConditionApprovalAccepted, Status: metav1.ConditionTrue, Reason: placement.ReasonRequestAccepted,
			Message: "the run goes on", ObservedGeneration: request.GetGeneration(), LastTransitionTime: metav1.NewTime(c.Clock.Now()),
		})
		err = kube.PatchStatus(ctx, c.Client, before, request.Object)
	}
	if err != nil {
		return fmt.Errorf("accepting the approval request %s: %w", name, err)
	}
	return nil
}

// recordRun logs the changed conditions of a run, and emits Events for them.
func (c *Controller) recordRun(ctx context.Context, before, after genericRun) {
	for _, current := range after.status.Conditions {
		was := cmp.Or(meta.FindStatusCondition(before.status.Conditions, current.Type), &metav1.Condition{})
		if was.Status == current.Status && was.Reason == current.Reason {
			continue
		}
		ctrl.LoggerFrom(ctx).Info("Staged update run changed state", "run", after.GetName(), "condition", current.Type,
			"from", was.Reason, "to", current.Reason)
		kind := corev1.EventTypeNormal
		switch current.Reason {
		case placement.ReasonRunInitFailed, placement.ReasonRunStuck, placement.ReasonRunFailed:
			kind = corev1.EventTypeWarning
		}
		message := cmp.Or(current.Message, after.status.Message, current.Reason)
		c.Recorder.Eventf(after.Object, nil, kind, current.Reason, "RollOut", "%s", clip(message))
	}
}
