// Package supervise runs the program muster-deployer while there is something to deploy, and
// watches for objects otherwise.
//
// Its invariant: the agent does not link Helm, and so saves Helm's memory. The credential reaches
// the program only over its standard input. The heartbeat continues regardless of the program. The
// program ends together with the agent, for any cause.
package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/retry"
)

const (
	// stableAfter is the run time before a crash starts a new series.
	stableAfter = 2 * time.Minute
	// crashLimit is the number of unexplained crashes in a series before they are reported on all
	// objects.
	crashLimit = 3
	// silence is the longest time between two replies of the program.
	silence = 45 * time.Second
)

// Supervisor runs the program while there is something to deploy.
type Supervisor struct {
	// Path is the path of the program, Arguments its access to the member.
	Path      string
	Arguments []string
	// Simulation replaces the program; nil otherwise.
	Simulation Simulation
	// Order returns the current order. It is sent again after a signal of Renewed.
	Order func() protocol.Order
	// Renewed signals a new credential or address of the hub.
	Renewed <-chan struct{}
	// Placed are the stores of the placed objects, one for each kind; Changed signals their changes.
	Placed  []*Placed
	Changed <-chan struct{}
	// Left reports whether releases or AppliedWorks are left on this member.
	Left func(context.Context) (bool, error)
	// Leaves returns the leave policy, or an empty string unless the member leaves. Empty receives the
	// progress of removing everything.
	Leaves func() clusterv1beta1.LeavePolicy
	Empty  func(left string, emptied bool)
	// Block receives the obstacle to removing a release; empty if there is none. May be nil.
	Block func(protocol.Blocked)
	// Count receives each Tally. May be nil.
	Count func(protocol.Tally)
	Log   logr.Logger
	Clock clock.Clock
	// Silence is the longest time without a reply before the program is killed; defaults to 45
	// seconds.
	Silence time.Duration

	suspects suspects
}

var errLeft = errors.New("the agent cannot remove all deliveries from this cluster: releases or AppliedWorks remain, and the hub does " +
	"not serve their kind to this member")

// crash is an unexpected end of the program.
type crash struct {
	cause error
	// explained is set if an action was in flight and became a suspect, or the Lease was lost.
	explained bool
}

func (c *crash) Error() string { return c.cause.Error() }
func (c *crash) Unwrap() error { return c.cause }

// Beside returns the path of the program in the agent's own directory.
func Beside() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the agent's own program: %w", err)
	}
	return filepath.Join(filepath.Dir(own), protocol.Program), nil
}

// Run runs until ctx ends, and ends the program then.
func (s *Supervisor) Run(ctx context.Context) {
	for _, placed := range s.Placed {
		if !placed.waitListed(ctx) {
			return
		}
	}
	left, emptied, series := s.left(ctx), false, 0
	for backoff := retry.Unreachable(); ctx.Err() == nil; {
		emptied = emptied && s.emptying()
		if s.emptying() && !emptied {
			// AppliedWorks may be left after their Works are gone.
			left = s.left(ctx)
			emptied = !left && !s.needsProgram()
		}
		if emptied {
			s.Empty("", true)
		}
		if emptied || s.Leaves() == clusterv1beta1.LeaveOrphan || !left && !s.needsProgram() {
			// The program ended idle: the next change of a placed object starts it.
			select {
			case <-ctx.Done():
			case <-s.Changed:
			}
			continue
		}
		begun := s.Clock.Now()
		ended, err := s.runOnce(ctx)
		emptied = ended && (!s.emptying() || !s.left(ctx))
		if err == nil && ended && !emptied {
			err = errLeft
		}
		var crashed *crash
		explained := errors.As(err, &crashed) && crashed.explained
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if s.Block != nil {
				s.Block(protocol.Blocked{})
			}
			left, backoff, series = false, retry.Unreachable(), 0
			continue
		case explained, s.Clock.Since(begun) > stableAfter:
			// The suspect is delayed, but not the other objects.
			backoff, series = retry.Unreachable(), 0
		}
		series++
		left = left || crashed != nil // the program may have ended before it removed objects no longer placed
		wait := backoff.Step()
		s.Log.Info("Deployer failed", "reason", err.Error(), "retry", wait.String())
		if s.emptying() || crashed == nil || !explained && series >= crashLimit {
			s.report(ctx, err.Error())
		}
		if retry.Wait(ctx, s.Clock, wait) != nil {
			return
		}
	}
}

// runOnce runs the program once. Afterwards the agent resumes its own watches.
func (s *Supervisor) runOnce(ctx context.Context) (emptied bool, err error) {
	run := s.run
	if s.Simulation != nil {
		run = s.simulate
	}
	emptied, err = run(ctx)
	for _, placed := range s.Placed {
		placed.takeBack(err == nil)
	}
	return emptied, err
}

func (s *Supervisor) emptying() bool { return s.Leaves() == clusterv1beta1.LeaveDelete }

// needsProgram reports whether a delivered object is known to need the program. A leaving member
// also counts objects in doubt.
func (s *Supervisor) needsProgram() bool {
	return slices.ContainsFunc(s.Placed, func(p *Placed) bool { return p.needsProgram() && (s.emptying() || !p.isUnsure()) })
}

// report reports the reason why nothing is deployed, on all placed objects and, for a leaving
// member, as its progress.
func (s *Supervisor) report(ctx context.Context, sentence string) {
	if s.emptying() {
		s.Empty(sentence, false)
	}
	for _, placed := range s.Placed {
		s.reportReason(ctx, placed, sentence)
	}
}

func (s *Supervisor) reportReason(ctx context.Context, placed *Placed, sentence string) {
	if err := placed.ReportReason(ctx, sentence); err != nil && ctx.Err() == nil {
		s.Log.Info("Failed to report that nothing is deployed", "kind", placed.Kind, "reason", err.Error())
	}
}

// handleReply handles a reply of the program.
func (s *Supervisor) handleReply(ctx context.Context, reply protocol.Reply) {
	if reply.Ended != nil && reply.Ended.Survived {
		s.suspects.clear(reply.Ended.Name)
	}
	if s.emptying() && (reply.Left != "" || reply.Failing != "") {
		s.Empty(cmp.Or(reply.Left, reply.Failing), false)
	}
	if s.Block != nil && reply.Blocked != nil {
		s.Block(*reply.Blocked)
	}
	if s.Count != nil && reply.Tally != nil {
		s.Count(*reply.Tally)
	}
	for _, placed := range s.Placed {
		switch {
		case placed.Kind != reply.Kind:
		case reply.Event != nil:
			if err := placed.handleEvent(*reply.Event); err != nil {
				s.Log.Info("Failed to follow the watch of the deployer", "kind", placed.Kind, "reason", err.Error())
			}
		case reply.Failing != "":
			s.reportReason(ctx, placed, reply.Failing)
		case reply.Idle != nil:
			placed.setIdle(reply.Idle)
		}
	}
}

func (s *Supervisor) left(ctx context.Context) bool {
	left, err := s.Left(ctx)
	if err != nil {
		s.Log.Info("Failed to list the releases", "reason", err.Error())
		// An agent without the right to list releases cannot deploy any. But a leaving member must not
		// count as empty then.
		return s.emptying() || !apierrors.IsForbidden(err)
	}
	return left
}
