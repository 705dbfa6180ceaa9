package agent

import (
	"context"
	"errors"
	"sync"

	"github.com/muster-fleet/muster/internal/agent/heartbeat"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// beat sends heartbeats, and reports and delivers while the hub accepts them. After ctx ends,
// heartbeats continue until running deployments end, unless another agent takes over. A long hook
// therefore does not make the member Lost.
func (s *session) beat(ctx context.Context) {
	lasting, silence := context.WithCancel(context.WithoutCancel(ctx))
	defer silence()
	whileBeating := &runnables{all: []*runnable{
		{run: func(ctx context.Context) { s.reporter().Run(ctx) }},
		{run: func(ctx context.Context) {
			if s.waitForFormer(ctx) {
				s.deliverUnlessQuarantined(ctx)
			}
		}},
		{run: s.uninstallOnRequest},
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
				if whileBeating.start(ctx) && s.fencedMessage() == "" {
					s.status.setBeaten(s.joinedMessage())
				}
				return
			case errors.As(err, &held):
				// Only the agent with accepted heartbeats reports and deploys.
				s.status.set(Standby, held.Error())
				if whileBeating.stop(); ctx.Err() != nil {
					silence()
				}
				return
			}
			heartbeats.WithLabelValues("failed").Inc()
			s.doubt(err)
		},
	}
	beating.Run(lasting)
}

// doubt wakes the check of the credential after a refusal, and the check of the address without an
// answer.
func (s *session) doubt(err error) {
	switch hubclient.Classify(err) {
	case hubclient.Unauthorized, hubclient.Forbidden:
		kubeclient.Notify(s.doubts)
	case hubclient.Unreachable:
		kubeclient.Notify(s.unanswered)
	case hubclient.Accepted, hubclient.NotFound, hubclient.Invalid:
	}
}

// hasSibling reports whether another Pod in the agent's namespace has a hostname.
func (s *session) hasSibling(ctx context.Context, hostname string) (bool, error) {
	pods, err := s.member.PodsOf(ctx, hostname)
	if hostname == s.hostname {
		pods-- // except its own Pod
	}
	return pods > 0, err
}

// runnables start and stop together.
type runnables struct {
	mu    sync.Mutex
	all   []*runnable
	ended bool
}

// start starts all; it returns false after end.
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

// stop requests the end of all without waiting. Another agent sends heartbeats now. The deployer's
// Lease delays the other deployer until this one has ended.
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

// wait returns after all have ended.
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

// runnable runs from start until some time after stop.
type runnable struct {
	run    func(context.Context)
	cancel context.CancelFunc
	ended  chan struct{}
}

// start begins another run after the end of the previous one.
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

// wait returns after the last run has ended.
func (r *runnable) wait() {
	if r.ended != nil {
		<-r.ended
	}
}
