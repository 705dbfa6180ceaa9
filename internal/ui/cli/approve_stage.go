package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// approveStage approves the next stage of a waiting staged update run.
func (c *changer) approveStage(ctx context.Context, hub client.Client, run view.Run) error {
	stage, name := run.Awaited()
	if name == "" {
		return errors.New(view.NoApprovalDue(run.Object) + because(run.Object))
	}
	request := updaterun.NewApprovalRequest(run.GetNamespace(), name)
	if err := hub.Get(ctx, client.ObjectKeyFromObject(request), request.Object); err != nil {
		return fmt.Errorf("reading the approval request for stage %s of %s: %w", stage, c.title(run.Object), err)
	}
	return c.approveFor(ctx, hub, run, request)
}

// approveRequest approves a request, if its run waits for it. Users without the right to read the
// run can approve as well.
func (c *changer) approveRequest(ctx context.Context, hub client.Client, request updaterun.ApprovalRequest) error {
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
		return fmt.Errorf("%s does not wait for %s, its state is %s%s", c.title(o), c.title(request.Object), view.State(o), because(o))
	}
	return c.approveFor(ctx, hub, run, request)
}

// approveFor approves the request of a waiting run, and shows the progress of the run.
func (c *changer) approveFor(ctx context.Context, hub client.Client, run view.Run, request updaterun.ApprovalRequest) error {
	if err := request.CheckOwner(run.Kind, run.Object); err != nil {
		return err
	}
	return c.write(ctx, hub, request, run.Object, func(o client.Object) bool {
		now, _ := view.RunOf(o)
		_, awaited := now.Awaited()
		return awaited != request.GetName()
	})
}

// write approves a request in its status, and shows an object until the approval has an effect.
func (c *changer) write(ctx context.Context, hub client.Client, request updaterun.ApprovalRequest, shown client.Object,
	done func(client.Object) bool) error {
	if request.Approved() {
		return c.line("%s is already approved.", c.title(request.Object))
	}
	if err := request.Approve(ctx, hub, cmp.Or(c.reason, "approved with muster approve")); err != nil {
		return fmt.Errorf("approving stage %s of run %s: %w", request.Spec.TargetStage, request.Spec.TargetUpdateRun, err)
	}
	if err := c.line("Stage %s of run %s is approved.", request.Spec.TargetStage, request.Spec.TargetUpdateRun); err != nil {
		return err
	}
	return c.follow(ctx, hub, shown, "in progress", func(o client.Object, gone bool) (bool, error) { return gone || done(o), nil })
}
