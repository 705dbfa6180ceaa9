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
	// removalPause is the time between a user's deletion of a Work and the removal of its objects. The
	// CRD of Works may be in deletion, and the API server shows that a moment later.
	removalPause = 3 * time.Second
	// placedPause is the same time for a Work placed, and not deleted, by the hub. If the hub still
	// wants the Work, it removes the finalizer and creates the Work again, and the objects stay.
	//
	// The pause is long enough for a restart of the hub or a standby to take over.
	placedPause = time.Minute
)

// pause returns the time between the deletion of a Work and the removal of its objects.
func pause(work *placement.Work) time.Duration {
	switch {
	case work.Annotations[placement.AnnotationRemoved] != "", work.Annotations[placement.AnnotationEvicted] != "":
		return 0
	case work.Labels[placement.LabelParentCRP] != "":
		return placedPause
	}
	return removalPause
}

// removals are the deleted Works, with the start of their removal and the confirmation of the hub.
type removals struct {
	mu     sync.Mutex
	byName map[string]pending
}

type pending struct {
	of        types.UID
	since     time.Time
	confirmed bool
}

// begun returns the removal of a deleted Work. The first call starts it.
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

// known reports whether the removal of a Work has begun.
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

// confirm returns the remaining wait before the objects of a deleted Work may be removed. Zero
// without an error means that they may be removed now.
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
			return 0, fmt.Errorf("keeping the objects of Work %s until the hub confirms its deletion: %w", work.Name, err)
		}
	}
	c.removals.confirm(work.Name)
	return 0, nil
}
