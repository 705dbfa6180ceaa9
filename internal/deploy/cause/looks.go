package cause

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/retry"
)

const (
	// maxFollowed limits the objects with a search in one release or Work.
	maxFollowed = 10
	// soonest is the least time between two searches for one object.
	soonest = time.Second
)

// Looks keeps the causes of the objects of a release or Work between two searches, for one
// goroutine at a time. The zero value is ready to use.
//
// A failing Pod does not change its workload, so no event reports it. Looks repeats a search when
// the object's own status changes, and at growing intervals while it is unready: 2 s to 5 min.
type Looks struct{ known map[types.UID]remembered }

// remembered is the last search for an object.
type remembered struct {
	status string
	causes []string
	at     time.Time
	// due is the time of the next search.
	due   time.Time
	pause wait.Backoff
}

// Round is one pass over the objects of a release or Work.
type Round struct {
	looks *Looks
	now   time.Time
	kept  map[types.UID]remembered
}

// Begin starts a pass.
func (l *Looks) Begin(now time.Time) *Round {
	return &Round{looks: l, now: now, kept: map[types.UID]remembered{}}
}

// Of returns the causes of an unready object. The causes do not repeat status, the message of the
// object's own status.
func (r *Round) Of(ctx context.Context, member dynamic.Interface, object Object, status string) []string {
	last, found := r.looks.known[object.UID]
	switch {
	case object.UID == "" || len(r.kept) >= maxFollowed:
		return nil
	case !found:
		last = remembered{pause: retry.Failed(), due: r.now}
	case last.status != status:
		last.due = kube.Earlier(last.due, last.at.Add(soonest))
	}
	last.status = status
	if !r.now.Before(last.due) {
		last.causes = slices.DeleteFunc(Find(ctx, member, object), func(text string) bool { return strings.Contains(status, text) })
		last.at, last.due = r.now, r.now.Add(last.pause.Step())
	}
	r.kept[object.UID] = last
	return last.causes
}

// End forgets the objects without a call in this pass, and returns the time of the next search;
// zero if there is none.
func (r *Round) End() (next time.Time) {
	r.looks.known = r.kept
	for _, is := range r.kept {
		next = kube.Earlier(next, is.due)
	}
	return next
}
