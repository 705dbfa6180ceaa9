package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/retry"
)

// leaveTimeout is for how long an agent that has registered elsewhere tries to leave the membership before. After that the hub sees the member
// as lost, and what was delivered stays.
const leaveTimeout = 10 * time.Minute

// leaveFormer leaves a membership that another one replaced, as if its hub had asked for that, with the leave policy of that hub. The new
// membership goes on meanwhile, and delivers nothing until what the former one delivered is removed.
func (a *Agent) leaveFormer(ctx context.Context, from *hubclient.Session, last *clusterv1beta1.InternalMemberCluster, to *hubclient.Session) {
	before, left := a.formerLeft, make(chan struct{})
	environment := a.environment
	environment.log = a.log.WithValues("leaving", from.Credential.Record(), "hub", from.Server())
	environment.status = &status{log: environment.log, quiet: true, reportChanged: notification()}
	last = last.DeepCopy()
	last.Spec.State = clusterv1beta1.ClusterStateLeave
	s := newSession(environment, from, last)
	whatBecame := "what was delivered to it was removed"
	if s.keepsAll() {
		whatBecame = "what was delivered to it stays there"
		s.formerLeft = make(chan struct{}) // never closed: there is nothing to deliver or to remove
	} else {
		a.formerLeft = left
	}
	s.farewell = fmt.Sprintf("this cluster registered as %s at %s; %s", to.Credential.Record(), to.Server(), whatBecame)
	from.ExpectReport(last.UID)
	a.leaving.Go(func() {
		defer close(left)
		defer from.Close()
		if !waitFor(ctx, before) {
			return
		}
		s.log.Info("leaving the membership before", "leavePolicy", s.leavePolicy())
		if problem := s.leave(logr.NewContext(ctx, s.log)); problem != "" {
			s.log.Info("the hub was not told that this cluster left it: delete the record there", "reason", problem)
			return
		}
		s.log.Info("left the membership before")
	})
}

// leave beats and reports until the hub has accepted that this member left, and says what kept it from that.
func (s *session) leave(ctx context.Context) (problem string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left, timedOut := false, false
	s.onLeft = func() {
		left = true
		cancel()
	}
	if err := s.identify(ctx); err != nil {
		return err.Error()
	}
	var running sync.WaitGroup
	running.Go(func() {
		if retry.Wait(ctx, s.clock, leaveTimeout) == nil {
			timedOut = true
			cancel()
		}
	})
	running.Go(func() { s.beat(ctx) })
	_, refusal := s.untilRefused(ctx)
	cancel()
	running.Wait()
	switch {
	case left:
		return ""
	case timedOut:
		return fmt.Sprintf("no answer within %s", leaveTimeout)
	case refusal == "":
		return "the agent ended"
	}
	return refusal
}
