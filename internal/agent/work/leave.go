package work

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// Remaining is what is still on the member while it leaves.
type Remaining struct {
	// Left is how many objects there are.
	Left int
	// Held says which of them wait for somebody else's finalizer or may not be removed, and which finalizer or why.
	Held []string

	refused bool
}

// RemoveAll stops applying for good and removes all that was applied for this member namespace. It tells whenever another number is left,
// and returns when nothing is. Run has to be running. It can be called again after it was interrupted at any point.
func (c *Controller) RemoveAll(ctx context.Context, progress func(Remaining)) error {
	c.mu.Lock() // waits for what is being applied
	c.leaving = true
	c.mu.Unlock()
	if err := c.listen(ctx); err != nil {
		return err
	}
	told := Remaining{Left: -1}
	for {
		left, err := c.ours(ctx)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			break
		}
		now := Remaining{}
		for i := range left {
			more, err := c.remove(ctx, &left[i])
			if err != nil {
				return err
			}
			now = Remaining{Left: now.Left + more.Left, Held: append(now.Held, more.Held...), refused: now.refused || more.refused}
		}
		if now.Left != told.Left || !slices.Equal(now.Held, told.Held) {
			progress(now)
			told = now
		}
		if err := c.untilMoved(ctx, now.refused); err != nil {
			return err
		}
	}
	progress(Remaining{})
	return c.releaseAll(ctx)
}

// listen waits for the caches, and hears from now on of every AppliedWork that goes: the loop of Run may not do so yet.
func (c *Controller) listen(ctx context.Context) error {
	applied, err := c.applied.GetInformer(ctx, &placement.AppliedWork{})
	if err == nil {
		_, err = applied.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { c.poke() }})
	}
	if err == nil {
		_, err = c.works.GetInformer(ctx, &placement.Work{})
	}
	return wrap(err, "reading what was applied")
}

// ours are the AppliedWorks of this membership, as they are now.
func (c *Controller) ours(ctx context.Context) ([]placement.AppliedWork, error) {
	var all placement.AppliedWorkList
	if err := c.live.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing AppliedWorks: %w", err)
	}
	return slices.DeleteFunc(all.Items, func(a placement.AppliedWork) bool { return !appliedFor(&a, c.Namespace, c.Membership) }), nil
}

// untilMoved waits until something went, or until it is time to try again what was refused.
func (c *Controller) untilMoved(ctx context.Context, refused bool) error {
	var again <-chan time.Time
	if refused {
		timer := c.Clock.NewTimer(refusedRetry)
		defer timer.Stop()
		again = timer.C()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-again:
	case <-c.moved:
	}
	return nil
}

func (r *Remaining) add(one *remnant) {
	if one == nil {
		return
	}
	r.Left++
	r.refused = r.refused || one.refused
	if one.held {
		r.Held = append(r.Held, one.text)
	}
}

func (r Remaining) String() string {
	text := fmt.Sprintf("%d objects left", r.Left)
	if r.Left == 1 {
		text = "1 object left"
	}
	if len(r.Held) > 0 {
		text += "; " + someOf(r.Held)
	}
	return text
}

// releaseAll takes the finalizer off all Works, which would otherwise hold the member namespace on the hub.
func (c *Controller) releaseAll(ctx context.Context) error {
	var works placement.WorkList
	if err := c.hub.List(ctx, &works, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("listing the Works of %s: %w", c.Namespace, err)
	}
	for i := range works.Items {
		work := &works.Items[i]
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			err := c.release(ctx, work)
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
