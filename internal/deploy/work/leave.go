package work

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// RemoveAll stops applying for good and removes everything applied for this member namespace. Run
// must be running.
//
// RemoveAll calls progress at each change of the number of remaining objects, and returns when none
// remains. It can be repeated after an interruption at any point.
func (c *Controller) RemoveAll(ctx context.Context, progress func(applied.Remaining)) error {
	c.mu.Lock() // waits for running reconciliations
	c.leaving = true
	c.mu.Unlock()
	if err := c.waitForCaches(ctx); err != nil {
		return err
	}
	removal := applied.Removal{Clock: c.Clock, Moved: c.moved, Progress: progress}
	err := removal.Run(ctx, func(ctx context.Context) (left applied.Remaining, done bool, err error) {
		appliedWorks, err := c.appliedWorksOf(ctx)
		for i := range appliedWorks {
			more, err := c.remove(ctx, &appliedWorks[i], nil)
			if err != nil {
				return left, false, err
			}
			left.Add(more)
		}
		return left, len(appliedWorks) == 0, err
	})
	if err != nil {
		return err
	}
	return c.removeFinalizers(ctx)
}

// waitForCaches waits for the caches and wakes RemoveAll for each deleted AppliedWork, because the
// sources of Run may not be ready.
func (c *Controller) waitForCaches(ctx context.Context) error {
	informer, err := c.appliedWorks.GetInformer(ctx, &placement.AppliedWork{})
	if err == nil {
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { kubeclient.Notify(c.moved) }})
	}
	if err == nil {
		_, err = c.works.GetInformer(ctx, &placement.Work{})
	}
	return wrap(err, "reading the applied objects")
}

// appliedWorksOf lists the AppliedWorks of this membership past the cache.
func (c *Controller) appliedWorksOf(ctx context.Context) ([]placement.AppliedWork, error) {
	var all placement.AppliedWorkList
	if err := c.live.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing AppliedWorks: %w", err)
	}
	return slices.DeleteFunc(all.Items, func(a placement.AppliedWork) bool { return !appliedFor(&a, c.Namespace, c.Membership) }), nil
}

// removeFinalizers removes the finalizer from all Works. They then do not block the member
// namespace on the hub.
func (c *Controller) removeFinalizers(ctx context.Context) error {
	var works placement.WorkList
	if err := c.hub.List(ctx, &works, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("listing the Works of %s: %w", c.Namespace, err)
	}
	for i := range works.Items {
		work := &works.Items[i]
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			err := c.removeFinalizer(ctx, work)
			if apierrors.IsConflict(err) {
				// The cache was behind.
				if err := c.hubLive.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
					return client.IgnoreNotFound(err)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		c.forget(work.Name)
	}
	return nil
}
