package agent

import (
	"context"
	"errors"
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

// formerAnswers bounds the wait for the hub of a replaced credential after a restart of the agent.
const formerAnswers = 30 * time.Second

// leaveFormer leaves a replaced membership as if its hub had requested it, with this hub's leave
// policy. The new membership runs meanwhile, but delivers nothing until the objects of the former
// one are removed.
func (a *Agent) leaveFormer(ctx context.Context, from *hubclient.Session, last *clusterv1beta1.InternalMemberCluster,
	to *hubclient.Session) {
	d := a.newDeparture(to)
	s := d.session(from, last)
	if d.succeeds(last) || s.keepsAll() {
		a.formerLeft = d.before
	}
	a.leaving.Go(func() {
		defer d.deliver()
		defer from.Close()
		if d.succeeds(last) || waitFor(ctx, d.before) {
			d.leave(ctx, s, last)
		}
		d.end(ctx)
	})
}

// resumeLeaving leaves the membership of a replaced credential that this process has not used. An
// earlier process ended in between, or the hub did not answer. It tries for a short time only.
func (a *Agent) resumeLeaving(ctx context.Context, to *hubclient.Session) {
	d, former := a.newDeparture(to), *to.Credential.Former
	trust := a.mode.trust(a.observe(), former)
	a.leaving.Go(func() {
		defer d.deliver()
		if succeedsAt(former, to.Credential) {
			d.deliver()
			d.tellLost(ctx, former, trust)
			d.end(ctx)
			return
		}
		if !waitFor(ctx, d.before) {
			return
		}
		from, err := a.reach(ctx, former, trust)
		if err != nil {
			logUnknown(ctx, d.logger(former.Record(), former.Server), err.Error())
			d.end(ctx)
			return
		}
		defer from.Close()
		if last := from.Report; last.UID != d.report.UID && !revokedSince(former, to.Credential) {
			s := d.session(from, last)
			if d.succeeds(last) || s.keepsAll() {
				d.deliver()
			}
			if !s.left { // the hub may know it from an earlier process
				d.leave(ctx, s, last)
			}
		}
		d.end(ctx)
	})
}

// reach returns a session with a replaced credential, once its hub accepts it.
func (a *Agent) reach(ctx context.Context, former hubclient.Credential, trust hubclient.Trust) (*hubclient.Session, error) {
	session, err := hubclient.NewSession(former, trust, a.clock)
	if err != nil {
		return nil, err
	}
	until := a.clock.Now().Add(formerAnswers)
	for backoff := retry.Unreachable(); ; {
		r, err := session.Verify(ctx, func(error) {})
		if r == hubclient.Accepted {
			return session, nil
		}
		if r.Refuses() || !a.clock.Now().Before(until) || retry.Wait(ctx, a.clock, backoff.Step()) != nil {
			session.Close()
			return nil, errors.New(session.Explain(err))
		}
	}
}

// logUnknown logs a departure that the hub does not know. At the end of the process, the next one
// still tries.
func logUnknown(ctx context.Context, log logr.Logger, reason string) {
	if ctx.Err() != nil {
		return
	}
	log.Info("The hub does not know that this cluster has left: delete its Cluster or MemberCluster there", "reason", reason)
}

// departure leaves one replaced membership.
type departure struct {
	*Agent
	to *hubclient.Session
	// report is the first report of the new membership.
	report *clusterv1beta1.InternalMemberCluster
	// before is closed after the departure before this one; nil if there was none.
	before <-chan struct{}
	// deliver lets the new membership deliver.
	deliver func()
	ended   chan struct{}
}

// newDeparture holds the deliveries of the new membership until the call of deliver.
func (a *Agent) newDeparture(to *hubclient.Session) *departure {
	left := make(chan struct{})
	d := &departure{
		Agent: a, to: to, report: to.Report, before: a.formerLeft, deliver: sync.OnceFunc(func() { close(left) }), ended: make(chan struct{}),
	}
	a.formerLeft, a.formerEnded = left, d.ended
	return d
}

// succeeds reports whether the new hub has a higher term of the same key. The agent leaves no such
// predecessor, and removes nothing.
func (d *departure) succeeds(last *clusterv1beta1.InternalMemberCluster) bool {
	return term.Supersedes(d.report.Spec.HubTerm, last.Spec.HubTerm)
}

// logger returns the logger for the replaced membership.
func (d *departure) logger(record, server string) logr.Logger {
	return d.log.WithValues("leaving", record, "hub", server)
}

// session returns a session of the replaced membership, as after a request to leave.
func (d *departure) session(from *hubclient.Session, last *clusterv1beta1.InternalMemberCluster) *session {
	environment := d.environment
	environment.log = d.logger(from.Credential.Record(), from.Server())
	environment.status = &status{log: environment.log, quiet: true, reportChanged: notification()}
	last = last.DeepCopy()
	last.Spec.State, last.Spec.UninstallAgent = clusterv1beta1.ClusterStateLeave, false // the agent stays for the new membership
	s := newSession(environment, from, last)
	whatBecame := "its deliveries were removed"
	if s.keepsAll() {
		whatBecame = "its deliveries stay"
		s.formerLeft = make(chan struct{}) // never closed: there is nothing to deliver or to remove
	}
	s.farewell = fmt.Sprintf("this cluster registered as %s at %s; %s", d.to.Credential.Record(), d.to.Server(), whatBecame)
	from.ExpectReport(last.UID)
	return s
}

// leave tells the former hub about the departure, or about the term of its successor.
func (d *departure) leave(ctx context.Context, s *session, last *clusterv1beta1.InternalMemberCluster) {
	if d.succeeds(last) {
		d.tellFormer(ctx, s.hub, d.report.Spec.HubTerm)
		return
	}
	if s.isSucceededBy(ctx, d.to) {
		s.log.Info("The previous hub does not answer, and the hub has the same member: its deliveries stay")
		return
	}
	s.log.Info("Leaving the previous membership", "leavePolicy", s.leavePolicy())
	if problem := s.leave(logr.NewContext(ctx, s.log)); problem != "" {
		logUnknown(ctx, s.log, problem)
		return
	}
	s.log.Info("Left the previous membership")
}

// end lets the agent forget the replaced credential. After the end of the process, the next one
// needs it.
func (d *departure) end(ctx context.Context) {
	if ctx.Err() == nil {
		close(d.ended)
	}
}

// waitForFormer returns true once the previous membership is left. If it removed its objects, it is
// forgotten too: a restart must not remove them again, because they may be new ones of that name.
func (s *session) waitForFormer(ctx context.Context) bool {
	return waitFor(ctx, s.formerLeft) && (s.formerEnded == nil || !isClosed(s.formerEnded) || waitFor(ctx, s.forgotten))
}

// forgetFormer removes the replaced credential after the departure.
func (s *session) forgetFormer(ctx context.Context) {
	if s.forgotten == nil || !waitFor(ctx, s.formerEnded) {
		return
	}
	for backoff := retry.Unreachable(); ctx.Err() == nil; {
		err := s.changeCredential(ctx, func(c *hubclient.Credential) { c.Former = nil })
		if err == nil {
			close(s.forgotten)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		s.log.Info("Failed to forget the credential of the previous membership", "reason", err.Error())
		_ = retry.Wait(ctx, s.clock, backoff.Step()) // the loop ends with ctx
	}
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
