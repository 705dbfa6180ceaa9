// Package retry has the waits of the agent between attempts. Every wait ends with the context,
// grows to a cap, and has jitter, because a fleet must not retry in step. An injected clock
// measures the waits.
package retry

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// never is more steps than any process lives; a Backoff stops growing at its cap long before.
const never = 1 << 30

// Soon waits for another party about to finish, such as a hub granting rights: 50 ms to 1 s. A hub
// rarely takes less than 100 ms for a right, and many agents may ask at once.
func Soon() wait.Backoff {
	return wait.Backoff{Duration: 50 * time.Millisecond, Cap: time.Second, Factor: 2, Jitter: 0.1, Steps: never}
}

// Watch waits after the end of a watch: 200 ms to 30 s.
func Watch() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Cap: 30 * time.Second, Factor: 2, Jitter: 0.3, Steps: never}
}

// Unreachable waits for a server without an answer: 1 s to 30 s.
func Unreachable() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Cap: 30 * time.Second, Factor: 2, Jitter: 0.3, Steps: never}
}

// Absent waits for an object that may be created soon: 500 ms to 10 s.
func Absent() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Cap: 10 * time.Second, Factor: 1.5, Jitter: 0.3, Steps: never}
}

// Refused waits after a refusal. Usually an administrator must lift it, but it may also pass by
// itself: 15 s to 5 min.
func Refused() wait.Backoff {
	return wait.Backoff{Duration: 15 * time.Second, Cap: 5 * time.Minute, Factor: 2, Jitter: 0.3, Steps: never}
}

// Failed waits after a failed deployment; a user may have to repair it: 2 s to 5 min.
func Failed() wait.Backoff {
	return wait.Backoff{Duration: 2 * time.Second, Cap: 5 * time.Minute, Factor: 2, Jitter: 0.1, Steps: never}
}

// Moving waits for another address of the hub; the agent can work without it: 1 s to 5 min.
func Moving() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Cap: 5 * time.Minute, Factor: 2, Jitter: 0.3, Steps: never}
}

// Doubled returns the wait after a number of events in a row. It is first after one event, doubles
// with each further one, and is at most most.
func Doubled(first time.Duration, times int, most time.Duration) time.Duration {
	for ; times > 1 && first < most; times-- {
		first *= 2
	}
	return min(first, most)
}

// clockCheck is the interval of reading the clock during a long wait.
const clockCheck = time.Hour

// Until returns once the time is due by the clock of now, or returns the context's error if ctx
// ends first. It reads the clock at least every hour, because timers stop while the machine is
// suspended.
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

// Unknown waits for an answer the hub cannot give now, without any urgency. The waits are 5 s to 45
// min, at most an hour with the jitter.
func Unknown() wait.Backoff {
	return wait.Backoff{Duration: 5 * time.Second, Cap: 45 * time.Minute, Factor: 2, Jitter: 0.3, Steps: never}
}

// Wait returns after a short time d, or returns the context's error if ctx ends first.
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

// Timer fires at the given time; never for the zero time.
func Timer(clk clock.Clock, due time.Time) (fires <-chan time.Time, stop func()) {
	if due.IsZero() {
		return nil, func() {}
	}
	timer := clk.NewTimer(due.Sub(clk.Now()))
	return timer.C(), func() { timer.Stop() }
}
