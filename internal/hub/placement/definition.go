package placement

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/served"
	"github.com/muster-fleet/muster/internal/kube"
)

// worksDefinition is the CustomResourceDefinition of Works.
const worksDefinition = "works.placement.kubernetes-fleet.io"

// keep leaves a placement that is being deleted and its Works as they are, because somebody deletes a whole kind.
func (c *Controller) keep(ctx context.Context, s subject, definition string) error {
	status := *s.copy().status
	if message := served.Kept(definition); definition != "" && status.Message != message {
		status.Message = message
		return c.report(ctx, s, status)
	}
	return nil
}

// undefined returns the name of the definition of Works if the Works of a placement go, or are gone, with that, and else "".
func (c *Controller) undefined(ctx context.Context, s subject, holdings map[string]*holding) (string, error) {
	lost := len(holdings) == 0 && len(scheduled(s.status)) > 0
	for _, h := range holdings {
		lost = lost || h.going
	}
	if !lost {
		return "", nil
	}
	return c.Kinds.Deleted(ctx, &placement.Work{})
}

// registerRelease adds the controller that takes the agents' finalizers off Works whose definition is being deleted: agents remove nothing
// then, and a definition that hangs on its Works could never be installed again.
func (c *Controller) registerRelease(mgr ctrl.Manager) error {
	going := func(q queue, o client.Object) {
		if o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), placement.FinalizerWork) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	allGoing := func(ctx context.Context, q queue, definition client.Object) {
		var works placement.WorkList
		if definition.GetName() != worksDefinition || definition.GetDeletionTimestamp() == nil {
			return
		}
		if err := c.Client.List(ctx, &works, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Listing the Works whose definition is being deleted")
		}
		for i := range works.Items {
			going(q, &works.Items[i])
		}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("work-release").
		Watches(&placement.Work{}, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { going(q, e.Object) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { going(q, e.ObjectNew) },
		}).
		Watches(kube.Metadata(served.DefinitionKind), handler.Funcs{
			CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { allGoing(ctx, q, e.Object) },
			UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { allGoing(ctx, q, e.ObjectNew) },
		}).
		Complete(reconcile.Func(c.release))
}

// release takes the agent's finalizer off a Work, if the API server confirms what the cache says of the definition.
func (c *Controller) release(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	definition := kube.Metadata(served.DefinitionKind)
	if err := c.Client.Get(ctx, types.NamespacedName{Name: worksDefinition}, definition); err != nil || definition.DeletionTimestamp == nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // when it goes all Works are looked at
	}
	var work placement.Work
	if err := c.Client.Get(ctx, request.NamespacedName, &work); err != nil || work.DeletionTimestamp == nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if deleted, err := c.Kinds.Deleted(ctx, &work); err != nil || deleted == "" {
		return ctrl.Result{}, err
	}
	after := work.DeepCopy()
	if !controllerutil.RemoveFinalizer(after, placement.FinalizerWork) {
		return ctrl.Result{}, nil
	}
	patch := client.MergeFromWithOptions(&work, client.MergeFromWithOptimisticLock{})
	if err := c.Client.Patch(ctx, after, patch, kube.FieldOwner); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("taking the finalizer off Work %s, whose definition is being deleted: %w", request, err)
	}
	return ctrl.Result{}, nil
}
