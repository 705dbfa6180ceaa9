package agent

import (
	"context"
	"errors"
	"sync"

	"github.com/muster-fleet/muster/internal/agent/heartbeat"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// beat beats, and reports and delivers while the beats are accepted. When ctx ends, the beats go on until what is being deployed has ended,
// unless another agent has taken over by then: the member is not lost for as long as a hook runs.
func (s *session) beat(ctx context.Context) {
	lasting, silence := context.WithCancel(context.WithoutCancel(ctx))
	defer silence()
	whileBeating := &runnables{all: []*runnable{
		{run: func(ctx context.Context) { s.reporter().Run(ctx) }},
		{run: func(ctx context.Context) {
			if waitFor(ctx, s.formerLeft) {
				s.deliver(ctx)
			}
		}},
	}}
	defer whileBeating.wait()
	stop := context.AfterFunc(ctx, func() {
		whileBeating.end()
		whileBeating.wait()
		silence()
	})
	defer stop()
	candidate := &heartbeat.Candidate{Lease: s.hub.Member, ClusterID: s.clusterID, Hostname: s.hostname, Sibling: s.hasSibling}
	beating := &heartbeat.Heartbeat{
		Beat: candidate.Beat, Period: s.period, PeriodChanged: s.periodChanged, Explain: s.hub.Explain, Clock: s.clock,
		Result: func(err error) {
			kubeclient.Notify(s.healthDue)
			var held *heartbeat.HeldError
			switch {
			case err == nil:
				heartbeats.WithLabelValues("accepted").Inc()
				if whileBeating.start(ctx) {
					s.status.setBeaten(s.joinedMessage())
				}
				return
			case errors.As(err, &held):
				// Only the agent that beats reports and deploys.
				s.status.set(Standby, held.Error())
				if whileBeating.stop(); ctx.Err() != nil {
					silence()
				}
				return
			}
			heartbeats.WithLabelValues("failed").Inc()
			if r := hubclient.Classify(err); r == hubclient.Unauthorized || r == hubclient.Forbidden {
				kubeclient.Notify(s.doubts)
			}
		},
	}
	beating.Run(lasting)
}

// hasSibling says whether another pod of the agent's namespace has a hostname.
func (s *session) hasSibling(ctx context.Context, hostname string) (bool, error) {
	pods, err := s.member.PodsOf(ctx, hostname)
	if hostname == s.hostname {
		pods-- // its own
	}
	return pods > 0, err
}

// runnables are started and stopped together.
type runnables struct {
	mu    sync.Mutex
	all   []*runnable
	ended bool
}

// start starts all, and says false after end.
func (r *runnables) start(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	for _, one := range r.all {
		one.start(ctx)
	}
	return true
}

// stop asks all to end, and does not wait: another agent beats, and the Lease of the deployer makes sure that this agent's has ended before.
func (r *runnables) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.all {
		one.stop()
	}
}

// end stops all for good.
func (r *runnables) end() {
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// wait returns when all have ended.
func (r *runnables) wait() {
	r.mu.Lock()
	var running []runnable
	for _, one := range r.all {
		running = append(running, *one)
	}
	r.mu.Unlock()
	for _, one := range running {
		one.wait()
	}
}

// runnable runs between start and stop, and a while after that.
type runnable struct {
	run    func(context.Context)
	cancel context.CancelFunc
	ended  chan struct{}
}

// start begins another run once the one before has ended.
func (r *runnable) start(ctx context.Context) {
	if r.cancel != nil {
		return
	}
	ctx, r.cancel = context.WithCancel(ctx)
	before, ended := r.ended, make(chan struct{})
	r.ended = ended
	go func() {
		defer close(ended)
		if before != nil {
			<-before
		}
		r.run(ctx)
	}()
}

func (r *runnable) stop() {
	if r.cancel != nil {
		r.cancel()
		r.cancel = nil
	}
}

// wait returns when the last run has ended.
func (r *runnable) wait() {
	if r.ended != nil {
		<-r.ended
	}
}
