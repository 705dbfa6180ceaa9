package applied

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/kube"
)

// RemoveRetry is the time until the next attempt to remove an object after a failure.
const RemoveRetry = 30 * time.Second

// Remaining is the rest on the member while everything is removed.
type Remaining struct {
	// Left is the number of remaining objects.
	Left int
	// Held are the objects with a finalizer or a protection against deletion, each with the reason.
	Held []string
	// Retry is set if no event announces the end of the obstacle.
	Retry bool
}

// Add adds another rest.
func (r *Remaining) Add(other Remaining) {
	r.Left, r.Held, r.Retry = r.Left+other.Left, append(r.Held, other.Held...), r.Retry || other.Retry
}

// String returns the number of objects and the first of the held ones.
func (r Remaining) String() string {
	text := fmt.Sprintf("%d objects left", r.Left)
	if r.Left == 1 {
		text = "1 object left"
	}
	if len(r.Held) > 0 {
		text += "; " + Join(r.Held)
	}
	return text
}

// Join joins the first few texts with the number of the others.
func Join(texts []string) string {
	return kube.JoinNames(texts[:min(len(texts), 5)], len(texts))
}

// Removal removes everything applied, step by step.
type Removal struct {
	Clock clock.Clock
	// Moved signals a deleted object; its buffer is 1.
	Moved <-chan struct{}
	// Progress is called at each change of the rest.
	Progress func(Remaining)
}

// Run calls remove until it is done: after each event, and after a while if an attempt failed.
func (r Removal) Run(ctx context.Context, remove func(context.Context) (left Remaining, done bool, err error)) error {
	reported := Remaining{Left: -1}
	for {
		left, done, err := remove(ctx)
		if err != nil {
			return err
		}
		if done {
			r.Progress(Remaining{})
			return nil
		}
		if left.Left != reported.Left || !slices.Equal(left.Held, reported.Held) {
			r.Progress(left)
			reported = left
		}
		if err := r.wait(ctx, left.Retry); err != nil {
			return err
		}
	}
}

func (r Removal) wait(ctx context.Context, retry bool) error {
	var again <-chan time.Time
	if retry {
		timer := r.Clock.NewTimer(RemoveRetry)
		defer timer.Stop()
		again = timer.C()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-again:
	case <-r.Moved:
	}
	return nil
}
