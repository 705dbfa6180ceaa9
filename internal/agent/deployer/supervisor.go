package deployer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/retry"
)

const (
	// grace is how long the program may take to end when it is asked to.
	grace = 20 * time.Second
	// proven is how long the program has to live for a crash not to count as one of a series.
	proven = 2 * time.Minute
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
}

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
	left, emptied := s.left(ctx), false
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
		emptied = ended
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if s.Block != nil {
				s.Block(Blocked{})
			}
			left, pace = false, retry.Unreachable()
			continue
		case s.Clock.Since(begun) > proven:
			pace = retry.Unreachable()
		}
		wait := pace.Step()
		sentence := err.Error()
		s.Log.Info("deployer failing", "reason", sentence, "retry", wait.String())
		s.report(ctx, sentence)
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
		placed.Report(ctx, placed.Placed(), sentence)
	}
}

// heed takes over what the program says.
func (s *Supervisor) heed(ctx context.Context, answer Answer) {
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
			placed.Report(ctx, placed.Placed(), answer.Failing)
		case answer.Rested != nil:
			placed.rest(answer.Rested)
		}
	}
}

func (s *Supervisor) left(ctx context.Context) bool {
	left, err := s.Left(ctx)
	if err != nil {
		s.Log.Info("looking for releases failing", "reason", err.Error())
		// Whoever may not look for releases may not remove any either.
		return !apierrors.IsForbidden(err)
	}
	return left
}

// run runs the program once. It returns no error if the program found nothing to do, and whether it emptied the member.
func (s *Supervisor) run(ctx context.Context) (emptied bool, err error) {
	if _, err := os.Stat(s.Path); err != nil {
		return false, fmt.Errorf("nothing is deployed on this cluster, because the program %s is missing beside the agent's (%w): "+
			"use an image that has it, or install it there", Program, err)
	}
	command := exec.Command(s.Path, s.Arguments...)
	command.Stderr = os.Stderr
	answers, said, err := os.Pipe()
	if err != nil {
		return false, fmt.Errorf("starting %s: %w", Program, err)
	}
	defer func() { _ = answers.Close() }() // nobody writes any more
	command.Stdout = said
	orders, err := command.StdinPipe()
	if err != nil {
		return false, fmt.Errorf("starting %s: %w", Program, err)
	}
	exited := start(command)
	_ = said.Close() // the program has its own
	if command.Process == nil {
		return false, fmt.Errorf("starting %s: %w", s.Path, <-exited)
	}
	stop := context.AfterFunc(ctx, func() { s.end(command) })
	defer stop()
	s.Log.Info("deployer started", "pid", command.Process.Pid)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		Hear(answers, func(answer Answer) {
			emptied = emptied || answer.Emptied
			s.heed(ctx, answer)
		})
	}()
	err = s.instruct(orders, exited)
	stop()
	<-heard
	var status *exec.ExitError
	switch {
	case err == nil:
		s.Log.Info("deployer ended: nothing is left to deploy or to watch")
		return emptied, nil
	case errors.As(err, &status):
		return false, fmt.Errorf("what deploys on this cluster, %s, ended unexpectedly (%w) and is started again; the agent's log says why", Program, status)
	default:
		return false, fmt.Errorf("running %s: %w", Program, err)
	}
}

// instruct sends the credential and each that replaces it, until the program has ended.
func (s *Supervisor) instruct(orders io.WriteCloser, exited <-chan error) error {
	defer func() { _ = orders.Close() }() // the program has ended
	for {
		if err := s.Order().Send(orders); err != nil {
			// It ended; why, it says when it is waited for.
			return <-exited
		}
		select {
		case err := <-exited:
			return err
		case <-s.Renewed:
		}
	}
}

// end asks the program to end, and kills it if it does not.
func (s *Supervisor) end(command *exec.Cmd) {
	_ = command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	timer := s.Clock.NewTimer(grace)
	go func() {
		<-timer.C()
		_ = command.Process.Kill() // it usually has ended by now
	}()
}
