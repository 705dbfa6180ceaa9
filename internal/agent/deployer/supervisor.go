package deployer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

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
	// Placed keeps the number of BundleDeployments, and tells of its changes.
	Placed *Placed
	// Left says whether something is left of what was deployed to this member.
	Left func(context.Context) (bool, error)
	// Report tells those who wait for their deployment why nothing happens.
	Report func(ctx context.Context, names []string, sentence string)
	Log    logr.Logger
	Clock  clock.Clock
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
	if !s.Placed.await(ctx) {
		return
	}
	left := s.left(ctx)
	for pace := retry.Unreachable(); ctx.Err() == nil; {
		if s.Placed.Count() == 0 && !left {
			// It was idle when it ended: what comes next comes as a BundleDeployment.
			select {
			case <-ctx.Done():
			case <-s.Placed.Changed:
			}
			continue
		}
		begun := s.Clock.Now()
		err := s.run(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			left, pace = false, retry.Unreachable()
			continue
		case s.Clock.Since(begun) > proven:
			pace = retry.Unreachable()
		}
		wait := pace.Step()
		sentence := err.Error()
		s.Log.Info("deployer failing", "reason", sentence, "retry", wait.String())
		s.Report(ctx, s.Placed.Names(), sentence)
		if retry.Wait(ctx, s.Clock, wait) != nil {
			return
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

// run runs the program once. It returns nil if the program found nothing to do.
func (s *Supervisor) run(ctx context.Context) error {
	if _, err := os.Stat(s.Path); err != nil {
		return fmt.Errorf("nothing is deployed on this cluster, because the program %s is missing beside the agent's (%w): "+
			"use an image that has it, or install it there", Program, err)
	}
	command := exec.Command(s.Path, s.Arguments...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	orders, err := command.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting %s: %w", Program, err)
	}
	exited := start(command)
	if command.Process == nil {
		return fmt.Errorf("starting %s: %w", s.Path, <-exited)
	}
	stop := context.AfterFunc(ctx, func() { s.end(command) })
	defer stop()
	s.Log.Info("deployer started", "pid", command.Process.Pid)
	err = s.instruct(orders, exited)
	stop()
	var status *exec.ExitError
	switch {
	case err == nil:
		s.Log.Info("deployer ended: nothing is left to deploy or to watch")
		return nil
	case errors.As(err, &status):
		return fmt.Errorf("what deploys on this cluster, %s, ended unexpectedly (%w) and is started again; the agent's log says why", Program, status)
	default:
		return fmt.Errorf("running %s: %w", Program, err)
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
