package agent

import (
	"context"
	"errors"
	"sync"

	"github.com/muster-fleet/muster/internal/agent/heartbeat"
	"github.com/muster-fleet/muster/internal/agent/remote"
)

// beat beats, and reports and delivers while the beats are accepted. When ctx ends it goes on to beat until what is being deployed has ended,
// unless another agent has taken over by then: the member is not lost for as long as a hook runs.
func (r *runner) beat(ctx context.Context) {
	lasting, silence := context.WithCancel(context.WithoutCancel(ctx))
	defer silence()
	acting := &acting{
		reporting: part{run: func(ctx context.Context) { r.reporter().Run(ctx) }},
		delivering: part{run: func(ctx context.Context) {
			if await(ctx, r.departed) {
				r.door.deliver(ctx, r)
			}
		}},
	}
	defer acting.wait()
	stop := context.AfterFunc(ctx, func() {
		acting.end()
		acting.wait()
		silence()
	})
	defer stop()
	r.mu.Lock()
	pace := r.pace
	r.mu.Unlock()
	claim := &heartbeat.Claim{Lease: r.session.Member, ClusterID: r.clusterID, Hostname: r.hostname}
	beating := &heartbeat.Heartbeat{
		Beat: claim.Beat, Period: pace, Periods: r.periods, Explain: r.session.Explain, Clock: r.clock,
		Outcome: func(err error) {
			poke(r.checks)
			var rival *heartbeat.Rival
			switch {
			case err == nil:
				heartbeats.WithLabelValues("accepted").Inc()
				if acting.start(ctx) {
					r.standing.beat(r.joined())
				}
				return
			case errors.As(err, &rival):
				// One reports and deploys, the one that beats.
				r.standing.enter(Standby, rival.Error())
				if acting.stop(); ctx.Err() != nil {
					silence()
				}
				return
			}
			heartbeats.WithLabelValues("failed").Inc()
			if v := remote.Classify(err); v == remote.Unauthorized || v == remote.Forbidden {
				poke(r.doubts)
			}
		},
	}
	beating.Run(lasting)
}

// acting is what an agent does that beats.
type acting struct {
	mu                    sync.Mutex
	reporting, delivering part
	ended                 bool
}

// start begins it, unless it was to end for good, which it says.
func (a *acting) start(ctx context.Context) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return false
	}
	a.reporting.start(ctx)
	a.delivering.start(ctx)
	return true
}

// stop asks it to end, and does not wait: another agent beats, and the Lease of the deployer sees to it that this one's is done before.
func (a *acting) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reporting.stop()
	a.delivering.stop()
}

// end does so for good.
func (a *acting) end() {
	a.stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}

// wait returns when it has ended.
func (a *acting) wait() {
	a.mu.Lock()
	reporting, delivering := a.reporting, a.delivering
	a.mu.Unlock()
	reporting.wait()
	delivering.wait()
}

// part is something that goes on between start and stop, and a while after that.
type part struct {
	run    func(context.Context)
	cancel context.CancelFunc
	ended  chan struct{}
}

// start begins it once what was begun before has ended.
func (p *part) start(ctx context.Context) {
	if p.cancel != nil {
		return
	}
	ctx, p.cancel = context.WithCancel(ctx)
	before, ended := p.ended, make(chan struct{})
	p.ended = ended
	go func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		p.run(ctx)
	}()
}

func (p *part) stop() {
	if p.cancel != nil {
		p.cancel()
		p.cancel = nil
	}
}

// wait returns when what was begun has ended.
func (p *part) wait() {
	if p.ended != nil {
		<-p.ended
	}
}
