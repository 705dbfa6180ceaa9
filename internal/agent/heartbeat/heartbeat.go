// Package heartbeat proves to the hub that the agent is alive: it renews one Lease.
//
// Its invariant: it is the only writer of the Lease's renewTime and holderIdentity, one blind patch per period. A beat that
// fails never ends the heartbeat; what a failure means is for others to judge.
package heartbeat

import (
	"context"
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
	Beat func(context.Context, time.Time) error
	// Period is the one to begin with; Periods tells whenever the hub sets another one.
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
		err := h.Beat(ctx, h.Clock.Now())
		if ctx.Err() != nil {
			return
		}
		h.Outcome(err)
		if beating != (err == nil) {
			beating = err == nil
			if beating {
				log.Info("heartbeat accepted again")
			} else {
				log.Info("heartbeat failing", "reason", h.Explain(err))
			}
		}
		if err == nil {
			pace = retry.Unreachable()
		}
		last := h.Clock.Now()
		delay := next(err, period, &pace, 2*rand.Float64()-1)
		for waiting := true; waiting; {
			timer := h.Clock.NewTimer(last.Add(delay).Sub(h.Clock.Now()))
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case period = <-h.Periods:
				if err == nil {
					delay = next(nil, period, &pace, 2*rand.Float64()-1)
				}
			case <-timer.C():
				waiting = false
			}
			timer.Stop()
		}
	}
}

// next is how long to wait after a beat: the period, moved by spread (-1 to 1) times 5 %, or the back-off after a failure, which
// never exceeds the period.
func next(err error, period time.Duration, pace *wait.Backoff, spread float64) time.Duration {
	regular := period + time.Duration(spread*0.05*float64(period))
	if err == nil {
		return regular
	}
	return min(pace.Step(), regular)
}
