// Package retry is how the agent waits before it asks again: every wait ends with the context, grows to a cap, carries
// jitter so that a fleet does not ask in step, and is measured by an injected clock.
package retry

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// never is more steps than any process lives; a Backoff stops growing at its cap long before.
const never = 1 << 30

// Soon is for what another party is about to finish, such as rights that a hub has just granted: 20 ms to 1 s.
func Soon() wait.Backoff {
	return wait.Backoff{Duration: 20 * time.Millisecond, Cap: time.Second, Factor: 1.5, Jitter: 0.1, Steps: never}
}

// Watch is for a watch that ended: 200 ms to 30 s.
func Watch() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Cap: 30 * time.Second, Factor: 2, Jitter: 0.3, Steps: never}
}

// Unreachable is for a server that does not answer: 1 s to 30 s.
func Unreachable() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Cap: 30 * time.Second, Factor: 2, Jitter: 0.3, Steps: never}
}

// Absent is for what somebody may be about to make: 500 ms to 10 s.
func Absent() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Cap: 10 * time.Second, Factor: 1.5, Jitter: 0.3, Steps: never}
}

// Refused is for a refusal that a person usually has to lift, and that may also pass by itself: 15 s to 5 min.
func Refused() wait.Backoff {
	return wait.Backoff{Duration: 15 * time.Second, Cap: 5 * time.Minute, Factor: 2, Jitter: 0.3, Steps: never}
}

// Failed is for a deployment that failed, which somebody may have to mend: 2 s to 5 min.
func Failed() wait.Backoff {
	return wait.Backoff{Duration: 2 * time.Second, Cap: 5 * time.Minute, Factor: 2, Jitter: 0.1, Steps: never}
}

// Moving is for another address of the hub, which the agent can do without: 1 s to 5 min.
func Moving() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Cap: 5 * time.Minute, Factor: 2, Jitter: 0.3, Steps: never}
}

// Doubled is how long to wait after something has happened so many times in a row: first, twice that after each further time, and at most most.
func Doubled(first time.Duration, times int, most time.Duration) time.Duration {
	for ; times > 1 && first < most; times-- {
		first *= 2
	}
	return min(first, most)
}

// clockCheck is how often a long wait reads the clock.
const clockCheck = time.Hour

// Until returns when the time is due by the clock that now reads, or with the context's error when that ends first. Until reads that clock
// every hour at least, because a timer stands still while its machine is suspended.
func Until(ctx context.Context, clk clock.Clock, now func() time.Time, due time.Time) error {
	for {
		left := due.Sub(now())
		if left <= 0 {
			return ctx.Err()
		}
		if err := Wait(ctx, clk, min(left, clockCheck)); err != nil {
			return err
		}
	}
}

// Unknown is for what a hub cannot answer at this time and nothing has to be done about: 5 s to 45 min, at most an hour with
// the jitter.
func Unknown() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Second, Cap: 45 * time.Minute, Factor: 2, Jitter: 0.3, Steps: never}
}

// Wait returns after d, which is short, or with the context's error when that ends first.
func Wait(ctx context.Context, clk clock.Clock, d time.Duration) error {
	timer := clk.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// Timer fires when the time is due; never if that is zero.
func Timer(clk clock.Clock, due time.Time) (fires <-chan time.Time, stop func()) {
	if due.IsZero() {
		return nil, func() {}
	}
	timer := clk.NewTimer(due.Sub(clk.Now()))
	return timer.C(), func() { timer.Stop() }
}
