package work

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

const (
	// removalPause is how long a Work that a user made has to be deleted before its objects are removed: the definition of all Works may be
	// being deleted, which the API server tells a moment later.
	removalPause = 3 * time.Second
	// placedPause is the same for a Work that the hub placed, and did not delete: a hub that still wants it removes the finalizer and creates the
	// Work again, which goes on with the objects. A hub that is started anew, or has a standby take over, has the time.
	placedPause = time.Minute
)

// pause returns how long a Work has to be deleted before its objects are removed.
func pause(work *placement.Work) time.Duration {
	switch {
	case work.Annotations[placement.AnnotationRemoved] != "", work.Annotations[placement.AnnotationEvicted] != "":
		return 0
	case work.Labels[placement.LabelParentCRP] != "":
		return placedPause
	}
	return removalPause
}

// removals are the deleted Works: since when this agent knows, and whether the hub confirmed the deletion.
type removals struct {
	mu     sync.Mutex
	byName map[string]pending
}

type pending struct {
	of        types.UID
	since     time.Time
	confirmed bool
}

// begun returns the removal of a deleted Work, which begins with the first call.
func (r *removals) begun(work *placement.Work, now time.Time) pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.byName[work.Name]; ok && known.of == work.UID {
		return known
	}
	if r.byName == nil {
		r.byName = map[string]pending{}
	}
	begun := pending{of: work.UID, since: now}
	r.byName[work.Name] = begun
	return begun
}

// known says whether the removal of a Work has begun.
func (r *removals) known(work *placement.Work) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[work.Name].of == work.UID
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

// confirm returns how long to wait before the objects of a deleted Work are removed; zero without error if they may be removed now.
func (c *Controller) confirm(ctx context.Context, work *placement.Work) (time.Duration, error) {
	now := c.Clock.Now()
	r := c.removals.begun(work, now)
	if r.confirmed {
		return 0, nil
	}
	if left := pause(work) - now.Sub(r.since); left > 0 {
		return left, nil
	}
	if c.ConfirmDeleted != nil {
		if err := c.ConfirmDeleted(ctx); err != nil {
			return 0, fmt.Errorf("leaving what was applied of Work %s until the hub confirms that it was taken away: %w", work.Name, err)
		}
	}
	c.removals.confirm(work.Name)
	return 0, nil
}
