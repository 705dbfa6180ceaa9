// Package heartbeat proves to the hub that the agent is alive: it renews one Lease.
//
// Its invariant: one agent at a time writes the Lease's renewTime and holderIdentity, by one patch per period that the hub refuses
// if another agent beat in between. A beat that fails never ends the heartbeat; what a failure means is for others to decide.
// renewTime is the member's own clock, as wrong as it may be: the hub shows by how much, and nobody decides by it whether a beat was late.
package heartbeat

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/retry"
)

// Heartbeat beats until its context ends.
type Heartbeat struct {
	// Beat renews the Lease.
	Beat func(ctx context.Context, now time.Time, period time.Duration) error
	// Period is how often to beat, 0 for not at all; PeriodChanged wakes the heartbeat when the period may have changed.
	Period        func() time.Duration
	PeriodChanged <-chan struct{}
	// Result takes how each beat went, nil for accepted.
	Result func(error)
	// Explain words an error for the log.
	Explain func(error) string
	Clock   clock.Clock
}

// Run beats at once and then every period.
func (h *Heartbeat) Run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	accepted, backoff := true, retry.Unreachable()
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
		if failing := err != nil && !errors.As(err, &held); accepted == failing {
			accepted = !failing
			if accepted {
				log.Info("heartbeat accepted again")
			} else {
				log.Info("heartbeat failing", "reason", h.Explain(err))
			}
		}
		if err == nil {
			backoff = retry.Unreachable()
		}
		if h.pause(ctx, err, period, &backoff); ctx.Err() != nil {
			return
		}
	}
}

// pause waits until the next beat is due, or the period becomes 0.
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

// next is how long to wait after a beat: the period, moved by spread (-1 to 1) times 5 %, or the back-off after a failure, which
// never exceeds the period. An agent that does not hold the Lease reads it again when the error says.
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
