package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/term"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/retry"
)

// leaveTimeout bounds leaving the previous membership after a registration elsewhere. Afterwards
// the hub marks the member Lost, and delivered objects stay.
const leaveTimeout = 10 * time.Minute

// leaveFormer leaves a replaced membership as if its hub had requested it, with this hub's leave
// policy. The new membership runs meanwhile, but delivers nothing until the objects of the former
// one are removed. The agent leaves no hub with a lower term of the same key, and removes nothing.
func (a *Agent) leaveFormer(ctx context.Context, from *hubclient.Session, last *clusterv1beta1.InternalMemberCluster,
	to *hubclient.Session) {
	if successor := to.Report.Spec.HubTerm; term.Supersedes(successor, last.Spec.HubTerm) {
		a.leaving.Go(func() {
			defer from.Close()
			a.tellFormer(ctx, from, successor)
		})
		return
	}
	before, left := a.formerLeft, make(chan struct{})
	environment := a.environment
	environment.log = a.log.WithValues("leaving", from.Credential.Record(), "hub", from.Server())
	environment.status = &status{log: environment.log, quiet: true, reportChanged: notification()}
	last = last.DeepCopy()
	last.Spec.State, last.Spec.UninstallAgent = clusterv1beta1.ClusterStateLeave, false // the agent stays for the new membership
	s := newSession(environment, from, last)
	whatBecame := "its deliveries were removed"
	if s.keepsAll() {
		whatBecame = "its deliveries stay"
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
		if s.isSucceededBy(ctx, to) {
			s.log.Info("The previous hub does not answer, and the hub has the same member: its deliveries stay")
			return
		}
		s.log.Info("Leaving the previous membership", "leavePolicy", s.leavePolicy())
		if problem := s.leave(logr.NewContext(ctx, s.log)); problem != "" {
			s.log.Info("The hub does not know that this cluster has left: delete its Cluster or MemberCluster there", "reason", problem)
			return
		}
		s.log.Info("Left the previous membership")
	})
}

// isSucceededBy reports whether the hub of another session takes the place of this one. It has the
// same member, and this hub does not answer: it was lost, and restored elsewhere. The member then
// leaves no fleet, and removes nothing, also if the lost hub comes back.
func (s *session) isSucceededBy(ctx context.Context, to *hubclient.Session) bool {
	if s.hub.Credential.Record() != to.Credential.Record() {
		return false
	}
	hub := *s.hub // Ask writes the report to it
	return hubclient.Classify(hub.Ask(ctx)) == hubclient.Unreachable && ctx.Err() == nil
}

// leave sends heartbeats and reports until the hub has accepted the departure of this member. It
// returns the problem if it cannot leave.
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
