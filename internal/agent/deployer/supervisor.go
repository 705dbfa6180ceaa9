package deployer

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
	"github.com/muster-fleet/muster/internal/agent/retry"
)

const (
	// proven is how long the program has to live for a crash not to count as one of a series.
	proven = 2 * time.Minute
	// unexplained is how many crashes in a series, with nothing under way that they could come from, say that nothing is deployed any more.
	unexplained = 3
	// silence is how long the program may say nothing.
	silence = 45 * time.Second
)

// Supervisor runs the program while there is something to deploy.
type Supervisor struct {
	// Path is where the program is, Arguments how it reaches the member.
	Path      string
	Arguments []string
	// Order is the order of now, whose token counts until renewed tells of another.
	Order func() Order
	// Renewed tells that there is another token.
	Renewed <-chan struct{}
	// Placed keep what is placed, kind by kind; Changed tells of their changes.
	Placed  []*Placed
	Changed <-chan struct{}
	// Left says whether anything is left of what was placed on this member.
	Left func(context.Context) (bool, error)
	// Leaves says whether the member leaves, and how; Empty takes how far it is with being emptied.
	Leaves func() clusterv1beta1.LeavePolicy
	Empty  func(left string, emptied bool)
	// Block takes what keeps something from being removed, or that nothing does. It may be nil.
	Block func(Blocked)
	// Count takes what the program has counted. It may be nil.
	Count func(Tally)
	Log   logr.Logger
	Clock clock.Clock
	// Silence is how long the program may say nothing before it counts as stuck; the usual time if 0.
	Silence time.Duration

	suspects suspects
}

var errLeft = errors.New("not all that was placed on this cluster could be removed: releases or AppliedWorks are left whose kind the hub does not show to this member")

// crash is an end of the program that nobody asked for.
type crash struct {
	cause error
	// explained says that it was at work on something, which is looked into, or that it is no fault at all.
	explained bool
}

func (c *crash) Error() string { return c.cause.Error() }
func (c *crash) Unwrap() error { return c.cause }

// Beside is where the program is, if it was installed as it should be.
func Beside() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the agent's own program: %w", err)
	}
	return filepath.Join(filepath.Dir(own), Program), nil
}

// Run goes on until ctx ends, and ends the program with it.
func (s *Supervisor) Run(ctx context.Context) {
	for _, placed := range s.Placed {
		if !placed.await(ctx) {
			return
		}
	}
	left, emptied, series := s.left(ctx), false, 0
	for pace := retry.Unreachable(); ctx.Err() == nil; {
		emptied = emptied && s.emptying()
		if s.emptying() && !emptied {
			// What was applied of Works may be left though they are gone.
			left = s.left(ctx)
			emptied = !left && !s.wanted()
		}
		if emptied {
			s.Empty("", true)
		}
		if emptied || s.Leaves() == clusterv1beta1.LeaveOrphan || !left && !s.wanted() {
			// It was idle when it ended: what comes next comes as one of the kinds that are followed.
			select {
			case <-ctx.Done():
			case <-s.Changed:
			}
			continue
		}
		begun := s.Clock.Now()
		ended, err := s.run(ctx)
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
				s.Block(Blocked{})
			}
			left, pace, series = false, retry.Unreachable(), 0
			continue
		case explained, s.Clock.Since(begun) > proven:
			// Whoever is the cause is delayed, and the others are not.
			pace, series = retry.Unreachable(), 0
		}
		series++
		wait := pace.Step()
		s.Log.Info("deployer failing", "reason", err.Error(), "retry", wait.String())
		if s.emptying() || crashed == nil || !explained && series >= unexplained {
			s.report(ctx, err.Error())
		}
		if retry.Wait(ctx, s.Clock, wait) != nil {
			return
		}
	}
}

func (s *Supervisor) emptying() bool { return s.Leaves() == clusterv1beta1.LeaveDelete }

// wanted says whether anything is placed that needs the program.
func (s *Supervisor) wanted() bool {
	return slices.ContainsFunc(s.Placed, (*Placed).wanted)
}

// report tells everybody who waits why nothing happens.
func (s *Supervisor) report(ctx context.Context, sentence string) {
	if s.emptying() {
		s.Empty(sentence, false)
	}
	for _, placed := range s.Placed {
		s.tell(ctx, placed, sentence)
	}
}

func (s *Supervisor) tell(ctx context.Context, placed *Placed, sentence string) {
	if err := placed.Tell(ctx, sentence); err != nil && ctx.Err() == nil {
		s.Log.Info("reporting that nothing is deployed failing", "kind", placed.Kind, "reason", err.Error())
	}
}

// heed takes over what the program says.
func (s *Supervisor) heed(ctx context.Context, answer Answer) {
	if answer.Ended != nil && answer.Ended.Survived {
		s.suspects.clear(answer.Ended.Name)
	}
	if s.emptying() && (answer.Left != "" || answer.Failing != "") {
		s.Empty(cmp.Or(answer.Left, answer.Failing), false)
	}
	if s.Block != nil && answer.Blocked != nil {
		s.Block(*answer.Blocked)
	}
	if s.Count != nil && answer.Tally != nil {
		s.Count(*answer.Tally)
	}
	for _, placed := range s.Placed {
		switch {
		case placed.Kind != answer.Kind:
		case answer.Failing != "":
			s.tell(ctx, placed, answer.Failing)
		case answer.Rested != nil:
			placed.rest(answer.Rested)
		}
	}
}

func (s *Supervisor) left(ctx context.Context) bool {
	left, err := s.Left(ctx)
	if err != nil {
		s.Log.Info("looking for releases failing", "reason", err.Error())
		// Whoever may not look for releases may not deploy any either; but to be unable to look is not to find nothing.
		return s.emptying() || !apierrors.IsForbidden(err)
	}
	return left
}
