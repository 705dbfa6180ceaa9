// Package heartbeat proves to the hub that the agent is alive: it renews one Lease.
//
// Its invariant: only one agent at a time writes the Lease's renewTime and holderIdentity, by one
// patch per period. The hub refuses the patch if another agent has sent a heartbeat in between. A
// failed heartbeat never ends the loop; the receiver of Result decides how to react.
//
// renewTime is the time of the member's own clock, however wrong. The hub shows the difference, but
// never decides by it whether a heartbeat was late.
package heartbeat

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/retry"
)

// Heartbeat sends heartbeats until its context ends.
type Heartbeat struct {
	// Beat renews the Lease.
	Beat func(ctx context.Context, now time.Time, period time.Duration) error
	// Period returns the interval of heartbeats, 0 for none; PeriodChanged wakes the loop after a
	// possible change.
	Period        func() time.Duration
	PeriodChanged <-chan struct{}
	// Result receives the result of each heartbeat, nil for accepted.
	Result func(error)
	// Explain formats an error for the log.
	Explain func(error) string
	Clock   clock.Clock
}

// Run sends a heartbeat at once and then in every period.
func (h *Heartbeat) Run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	backoff := retry.Unreachable()
	var outage logging.Outage
	for {
		period := h.Period()
		if period == 0 {
			select {
			case <-ctx.Done():
				return
			case <-h.PeriodChanged:
			}
			continue
		}
		err := h.Beat(ctx, h.Clock.Now(), period)
		if ctx.Err() != nil {
			return
		}
		h.Result(err)
		var held *HeldError
		if err == nil || errors.As(err, &held) {
			if outage.End() {
				log.Info("Heartbeat accepted again")
			}
		} else if reason := h.Explain(err); outage.IsNews(reason) {
			log.Info("Failed to send the heartbeat", "reason", reason)
		}
		if err == nil {
			backoff = retry.Unreachable()
		}
		if h.pause(ctx, err, period, &backoff); ctx.Err() != nil {
			return
		}
	}
}

// pause waits until the next heartbeat is due, or the period becomes 0.
func (h *Heartbeat) pause(ctx context.Context, err error, period time.Duration, backoff *wait.Backoff) {
	last := h.Clock.Now()
	delay := next(err, period, backoff, 2*rand.Float64()-1)
	for {
		timer := h.Clock.NewTimer(last.Add(delay).Sub(h.Clock.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-h.PeriodChanged:
			timer.Stop()
			now := h.Period()
			if now == 0 {
				return
			}
			if now != period && err == nil {
				delay = next(nil, now, backoff, 2*rand.Float64()-1)
			}
			period = now
		case <-timer.C():
			return
		}
	}
}

// next returns the wait after a heartbeat: the period, changed by up to 5 % (spread is -1 to 1), or
// the back-off after a failure. The back-off never exceeds the period. An agent without the Lease
// reads it again after the time in the error.
func next(err error, period time.Duration, backoff *wait.Backoff, spread float64) time.Duration {
	regular := period + time.Duration(spread*0.05*float64(period))
	var held *HeldError
	switch {
	case err == nil:
		return regular
	case errors.As(err, &held):
		return held.RetryAfter
	}
	return min(backoff.Step(), regular)
}
