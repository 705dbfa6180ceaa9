package work

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/kube"
)

// Reconcile applies a Work, or removes the objects of a deleted one.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer c.reportIdle(ctx)
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.leaving {
		return ctrl.Result{}, nil
	}
	var work placement.Work
	if err := c.hub.Get(ctx, request.NamespacedName, &work); apierrors.IsNotFound(err) {
		// Another client removed the finalizer, so the applied objects stay.
		c.forget(request.Name)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Work %s: %w", request.Name, err)
	}
	appliedWork, err := c.getAppliedWork(ctx, c.member, work.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	wait := c.expected.Await(client.ObjectKeyFromObject(&work), &work)
	if appliedWork != nil {
		wait = max(wait, c.expected.Await(client.ObjectKeyFromObject(appliedWork), appliedWork))
	}
	if wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // or earlier, after an event of the cache
	}
	return c.act(ctx, &work, appliedWork)
}

// act carries out the state of a Work and reports it.
func (c *Controller) act(ctx context.Context, work *placement.Work, appliedWork *placement.AppliedWork) (ctrl.Result, error) {
	o := observed{
		deleted: work.DeletionTimestamp != nil, hasFinalizer: controllerutil.ContainsFinalizer(work, placement.FinalizerWork),
		abandon:   work.Spec.DeleteStrategy != nil && work.Spec.DeleteStrategy.PropagationPolicy == placement.PropagationAbandon,
		namespace: c.Namespace, membership: c.Membership, owner: appliedWork,
		recipient: delivery.OtherRecipient(work.Labels, c.Namespace, c.Report),
	}
	var p *pass
	var left applied.Remaining
	if err := c.inherit(ctx, work, &o); err != nil {
		return ctrl.Result{}, err
	}
	appliedWork = o.owner
	var err error
	state := decide(o)
	if state == Removing || state == Abandoning {
		if wait, err := c.confirm(ctx, work); err != nil || wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, err
		}
	}
	switch state {
	case Gone:
		c.forget(work.Name)
		return ctrl.Result{}, nil
	case Removed:
		return ctrl.Result{}, c.finishRemoval(ctx, work, appliedWork)
	case Removing:
		if len(appliedWork.Status.AppliedResources) == 0 {
			err = c.findOrphans(ctx, work, appliedWork)
		}
		var heirs map[key]string
		if err == nil {
			heirs, err = c.heirs(ctx, work)
		}
		if err == nil {
			left, err = c.remove(ctx, appliedWork, heirs)
		}
	case Abandoning:
		err = c.abandon(ctx, appliedWork)
	case Applying:
		if err = c.addFinalizer(ctx, work); err == nil {
			if p, err = c.apply(ctx, work, appliedWork); err == nil {
				c.follow(ctx, p)
			}
		}
	case Foreign, Clearing, Misdirected:
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := c.report(ctx, work, c.describe(state, work, appliedWork, p, left)); err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case left.Retry:
		return ctrl.Result{RequeueAfter: applied.RemoveRetry}, nil
	case p != nil && !p.requeue.IsZero():
		return kube.At(p.requeue, c.Clock.Now()), nil
	}
	return ctrl.Result{}, nil
}

// getAppliedWork returns the AppliedWork of a Work, or nil.
func (c *Controller) getAppliedWork(ctx context.Context, reader client.Reader, name string) (*placement.AppliedWork, error) {
	var appliedWork placement.AppliedWork
	err := reader.Get(ctx, types.NamespacedName{Name: name}, &appliedWork)
	switch {
	case kube.NotServed(err):
		// The objects of the AppliedWork may exist, so the Work waits until the kind is served again.
		c.endUnserved()
		return nil, errUnserved
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading AppliedWork %s: %w", name, err)
	}
	return &appliedWork, nil
}

// addFinalizer adds the finalizer to a Work: the hub must not delete the Work before its objects
// are deleted.
func (c *Controller) addFinalizer(ctx context.Context, work *placement.Work) error {
	before := work.DeepCopy()
	if !controllerutil.AddFinalizer(work, placement.FinalizerWork) && work.Annotations[placement.AnnotationRetains] != "" {
		return nil
	}
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, placement.AnnotationRetains, strconv.FormatBool(true))
	if err := c.hub.Patch(ctx, work, changesOf(before), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("claiming Work %s: %w", work.Name, err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(work), work)
	return nil
}

// finishRemoval removes the finalizer of a deleted Work without remaining objects.
func (c *Controller) finishRemoval(ctx context.Context, work *placement.Work, foreign *placement.AppliedWork) error {
	if foreign == nil {
		// The cache may be behind.
		left, err := c.getAppliedWork(ctx, c.live, work.Name)
		if err != nil || left != nil && appliedFor(left, c.Namespace, c.Membership) {
			return err
		}
		if left == nil && !c.removals.known(work) {
			objects, err := c.orphansOf(ctx, work)
			if err != nil {
				return err
			}
			if len(objects) > 0 {
				_, err = c.createAppliedWork(ctx, work.Name) // the new AppliedWork has its objects removed
				return err
			}
		}
	}
	if err := c.removeFinalizer(ctx, work); err != nil {
		return err
	}
	c.forget(work.Name)
	c.Log.Info("Work removed", "work", work.Name)
	return nil
}

// findOrphans lists the objects of a lost AppliedWork in its replacement.
func (c *Controller) findOrphans(ctx context.Context, work *placement.Work, appliedWork *placement.AppliedWork) error {
	objects, err := c.orphansOf(ctx, work)
	if err != nil {
		return err
	}
	return c.writeResources(ctx, appliedWork, objects)
}

func (c *Controller) removeFinalizer(ctx context.Context, work *placement.Work) error {
	before := work.DeepCopy()
	if !controllerutil.RemoveFinalizer(work, placement.FinalizerWork) {
		return nil
	}
	if err := c.hub.Patch(ctx, work, changesOf(before), client.FieldOwner(fieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting Work %s go: %w", work.Name, err)
	}
	return nil
}

func (c *Controller) forget(work string) {
	c.watcher.Use(work, nil)
	c.tracker.forget(work)
	c.removals.forget(work)
}
