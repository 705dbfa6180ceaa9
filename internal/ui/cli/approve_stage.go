package cli

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// approveStage approves the stage that a staged update run waits for.
func (c *changer) approveStage(ctx context.Context, hub client.Client, run view.Run) error {
	stage, name := run.Awaited()
	if name == "" {
		return fmt.Errorf("%s waits for no approval, it is %s%s", c.title(run.Object), view.State(run.Object), because(run.Object))
	}
	o := run.Request(name)
	if err := hub.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return fmt.Errorf("reading the approval request for stage %s of %s: %w", stage, c.title(run.Object), err)
	}
	request, _ := view.ApprovalOf(o)
	return c.approveFor(ctx, hub, run, request)
}

// approveRequest approves a request, if the run that it is of waits for it. Users who may not read
// the run may approve all the same.
func (c *changer) approveRequest(ctx context.Context, hub client.Client, request view.Approval) error {
	var o client.Object = &placement.ClusterStagedUpdateRun{}
	if request.GetNamespace() != "" {
		o = &placement.StagedUpdateRun{}
	}
	err := hub.Get(ctx, client.ObjectKey{Namespace: request.GetNamespace(), Name: request.Spec.TargetUpdateRun}, o)
	switch {
	case apierrors.IsForbidden(err):
		return c.write(ctx, hub, request, request.Object, func(o client.Object) bool { return view.State(o) == view.StateApproved })
	case err != nil:
		return fmt.Errorf("reading the staged update run of %s: %w", c.title(request.Object), err)
	}
	run, _ := view.RunOf(o)
	if _, awaited := run.Awaited(); awaited != request.GetName() && !request.Approved() {
		return fmt.Errorf("%s does not wait for %s, it is %s%s", c.title(o), c.title(request.Object), view.State(o), because(o))
	}
	return c.approveFor(ctx, hub, run, request)
}

// approveFor approves a request that a run waits for, and shows what becomes of the run.
func (c *changer) approveFor(ctx context.Context, hub client.Client, run view.Run, request view.Approval) error {
	if !metav1.IsControlledBy(request, run) {
		return fmt.Errorf("%s is not of %s and counts for nothing: delete it, and the hub makes another",
			c.title(request.Object), c.title(run.Object))
	}
	return c.write(ctx, hub, request, run.Object, func(o client.Object) bool {
		now, _ := view.RunOf(o)
		_, awaited := now.Awaited()
		return awaited != request.GetName()
	})
}

// write approves a request in its status, and shows an object until the approval has an effect.
func (c *changer) write(ctx context.Context, hub client.Client, request view.Approval, shown client.Object,
	done func(client.Object) bool) error {
	if request.Approved() {
		return c.line("%s is approved already.", c.title(request.Object))
	}
	before := request.DeepCopyObject().(client.Object)
	request.Approve("approved with muster approve")
	lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}) // the list of conditions is replaced as a whole
	if err := hub.Status().Patch(ctx, request.Object, lock); err != nil {
		return fmt.Errorf("approving stage %s of run %s: %w", request.Spec.TargetStage, request.Spec.TargetUpdateRun, err)
	}
	if err := c.line("Stage %s of run %s is approved.", request.Spec.TargetStage, request.Spec.TargetUpdateRun); err != nil {
		return err
	}
	return c.follow(ctx, hub, shown, "going on", func(o client.Object, gone bool) (bool, error) { return gone || done(o), nil })
}
