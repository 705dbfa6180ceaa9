package work

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// Reconcile applies a Work, or removes what was applied of one that is deleted.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer c.rest(ctx)
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.leaving {
		return ctrl.Result{}, nil
	}
	var work placement.Work
	if err := c.hub.Get(ctx, request.NamespacedName, &work); apierrors.IsNotFound(err) {
		// Whoever took the finalizer away wants what was applied to stay.
		c.forget(request.Name)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Work %s: %w", request.Name, err)
	}
	applied, err := c.ownerOf(ctx, c.member, work.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	wait := c.written.Await(&work)
	if applied != nil {
		wait = max(wait, c.written.Await(applied))
	}
	if wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache wakes it earlier
	}
	return c.act(ctx, &work, applied)
}

// act takes the next step of a Work and reports where it stands.
func (c *Controller) act(ctx context.Context, work *placement.Work, applied *placement.AppliedWork) (ctrl.Result, error) {
	o := observed{
		deleted: work.DeletionTimestamp != nil, claimed: controllerutil.ContainsFinalizer(work, placement.FinalizerWork),
		abandon:   work.Spec.DeleteStrategy != nil && work.Spec.DeleteStrategy.PropagationPolicy == placement.PropagationAbandon,
		namespace: c.Namespace, membership: c.Membership, owner: applied,
	}
	var p *pass
	var left Remaining
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
		return ctrl.Result{}, c.letGo(ctx, work, applied)
	case Removing:
		left, err = c.remove(ctx, applied)
	case Abandoning:
		err = c.abandon(ctx, applied)
	case Applying:
		if err = c.claim(ctx, work); err == nil {
			p, err = c.apply(ctx, work, applied)
		}
	case Foreign, Clearing:
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := c.report(ctx, work, c.describe(state, work, applied, p, left)); err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case left.refused:
		return ctrl.Result{RequeueAfter: refusedRetry}, nil
	case p != nil && !p.again.IsZero():
		return ctrl.Result{RequeueAfter: max(p.again.Sub(c.Clock.Now()), time.Millisecond)}, nil
	}
	return ctrl.Result{}, nil
}

// ownerOf returns the AppliedWork of a Work, or nil.
func (c *Controller) ownerOf(ctx context.Context, reader client.Reader, name string) (*placement.AppliedWork, error) {
	var applied placement.AppliedWork
	err := reader.Get(ctx, types.NamespacedName{Name: name}, &applied)
	switch {
	case kube.NotServed(err):
		// What its AppliedWork owned may be there: the Work has to wait until that can be known.
		c.endUnserved()
		return nil, errUnserved
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading AppliedWork %s: %w", name, err)
	}
	return &applied, nil
}

// claim puts the finalizer on a Work, so that it does not go before what is applied of it.
func (c *Controller) claim(ctx context.Context, work *placement.Work) error {
	before := work.DeepCopy()
	if !controllerutil.AddFinalizer(work, placement.FinalizerWork) && work.Annotations[placement.AnnotationRetains] != "" {
		return nil
	}
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, placement.AnnotationRetains, strconv.FormatBool(true))
	if err := c.hub.Patch(ctx, work, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("claiming Work %s: %w", work.Name, err)
	}
	c.written.Store(work)
	return nil
}

// letGo takes the finalizer off a deleted Work of which nothing is left here.
func (c *Controller) letGo(ctx context.Context, work *placement.Work, foreign *placement.AppliedWork) error {
	if foreign == nil {
		// The cache may not have it yet.
		left, err := c.ownerOf(ctx, c.live, work.Name)
		if err != nil || left != nil && appliedFor(left, c.Namespace, c.Membership) {
			return err
		}
	}
	if err := c.release(ctx, work); err != nil {
		return err
	}
	c.forget(work.Name)
	c.Log.Info("Work removed", "work", work.Name)
	return nil
}

func (c *Controller) release(ctx context.Context, work *placement.Work) error {
	before := work.DeepCopy()
	if !controllerutil.RemoveFinalizer(work, placement.FinalizerWork) {
		return nil
	}
	if err := c.hub.Patch(ctx, work, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldOwner)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting Work %s go: %w", work.Name, err)
	}
	return nil
}

func (c *Controller) forget(work string) {
	c.kinds.use(work, nil)
	c.ledger.forget(work)
	c.removals.forget(work)
}
