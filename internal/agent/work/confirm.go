package work

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// removalPause is how long a Work has to be seen deleted before anything of it is removed. A hub that still wants it takes the finalizer off
// at once, so that the Work goes, what is applied stays, and a new Work goes on with it.
const removalPause = 3 * time.Second

// removals remembers of deleted Works since when they are known to be, and whether the hub has confirmed that.
type removals struct {
	mu     sync.Mutex
	byName map[string]removal
}

type removal struct {
	of        types.UID
	since     time.Time
	confirmed bool
}

// begun is when a Work was first seen deleted, and whether that is confirmed.
func (r *removals) begun(work *placement.Work, now time.Time) removal {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.byName[work.Name]; ok && known.of == work.UID {
		return known
	}
	if r.byName == nil {
		r.byName = map[string]removal{}
	}
	begun := removal{of: work.UID, since: now}
	r.byName[work.Name] = begun
	return begun
}

func (r *removals) confirm(work string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.byName[work]
	known.confirmed = true
	r.byName[work] = known
}

func (r *removals) forget(work string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byName, work)
}

// confirm says how long to wait before anything of a deleted Work is removed; no time and no error if it may be now.
func (c *Controller) confirm(ctx context.Context, work *placement.Work) (time.Duration, error) {
	now := c.Clock.Now()
	r := c.removals.begun(work, now)
	if r.confirmed {
		return 0, nil
	}
	if left := removalPause - now.Sub(r.since); left > 0 {
		return left, nil
	}
	if c.Stays != nil {
		if err := c.Stays(ctx); err != nil {
			return 0, fmt.Errorf("leaving what was applied of Work %s until the hub confirms that it was taken away: %w", work.Name, err)
		}
	}
	c.removals.confirm(work.Name)
	return 0, nil
}
