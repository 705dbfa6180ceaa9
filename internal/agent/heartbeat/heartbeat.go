// Package heartbeat proves to the hub that the agent is alive: it renews one Lease.
//
// Its invariant: one agent at a time writes the Lease's renewTime and holderIdentity, by one patch per period that the hub refuses
// if another agent beat in between. A beat that fails never ends the heartbeat; what a failure means is for others to judge.
// renewTime is the member's own clock, as wrong as it may be: the hub shows by how much, and nobody judges a beat by it.
package heartbeat

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/agent/retry"
)

// Heartbeat beats until its context ends.
type Heartbeat struct {
	// Beat renews the Lease.
	Beat func(ctx context.Context, now time.Time, period time.Duration) error
	// Period is the one to begin with; Periods tells whenever there is another one. While it is 0 there are no beats.
	Period  time.Duration
	Periods <-chan time.Duration
	// Outcome is told how each beat went, nil for accepted.
	Outcome func(error)
	// Explain words an error for the log.
	Explain func(error) string
	Clock   clock.Clock
}

// Run beats at once and then every period.
func (h *Heartbeat) Run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	period, beating := h.Period, true
	pace := retry.Unreachable()
	for {
		for period == 0 {
			select {
			case <-ctx.Done():
				return
			case period = <-h.Periods:
			}
		}
		err := h.Beat(ctx, h.Clock.Now(), period)
		if ctx.Err() != nil {
			return
		}
		h.Outcome(err)
		var rival *Rival
		if failing := err != nil && !errors.As(err, &rival); beating == failing {
			beating = !failing
			if beating {
				log.Info("heartbeat accepted again")
			} else {
				log.Info("heartbeat failing", "reason", h.Explain(err))
			}
		}
		if err == nil {
			pace = retry.Unreachable()
		}
		if period = h.pause(ctx, err, period, &pace); ctx.Err() != nil {
			return
		}
	}
}

// pause waits until the next beat is due, or the period becomes 0, and returns the period that counts then.
func (h *Heartbeat) pause(ctx context.Context, err error, period time.Duration, pace *wait.Backoff) time.Duration {
	last := h.Clock.Now()
	delay := next(err, period, pace, 2*rand.Float64()-1)
	for {
		timer := h.Clock.NewTimer(last.Add(delay).Sub(h.Clock.Now()))
		select {
		case <-ctx.Done():
			timer.Stop()
			return period
		case period = <-h.Periods:
			timer.Stop()
			if period == 0 {
				return period
			}
			if err == nil {
				delay = next(nil, period, pace, 2*rand.Float64()-1)
			}
		case <-timer.C():
			return period
		}
	}
}

// next is how long to wait after a beat: the period, moved by spread (-1 to 1) times 5 %, or the back-off after a failure, which
// never exceeds the period. A rival says itself when to look again.
func next(err error, period time.Duration, pace *wait.Backoff, spread float64) time.Duration {
	regular := period + time.Duration(spread*0.05*float64(period))
	var rival *Rival
	switch {
	case err == nil:
		return regular
	case errors.As(err, &rival):
		return rival.Wait
	}
	return min(pace.Step(), regular)
}
