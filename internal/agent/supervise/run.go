package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

// run runs the program once, and reports whether it emptied the member. It returns no error if the
// program found nothing to do. After ctx ends, the program ends as soon as Helm has ended.
func (s *Supervisor) run(ctx context.Context) (emptied bool, err error) {
	if _, err := os.Stat(s.Path); err != nil {
		return false, fmt.Errorf("nothing is deployed on this cluster, because the program %s is missing beside the agent's (%w): "+
			"use an image that has it, or install it there", protocol.Program, err)
	}
	command := exec.Command(s.Path, s.Arguments...)
	orders, err := command.StdinPipe()
	if err != nil {
		return false, fmt.Errorf("starting %s: %w", protocol.Program, err)
	}
	watchdog, stderr := newWatchdog(s.Clock, cmp.Or(s.Silence, silence)), &crashReader{to: os.Stderr}
	var reading sync.WaitGroup
	stdout, err := readPipe(&reading, func(replies io.Reader) {
		protocol.ReadReplies(replies, func(reply protocol.Reply) {
			watchdog.observe(reply)
			emptied = emptied || reply.Emptied
			s.handleReply(ctx, reply)
			watchdog.handled()
		})
	})
	if err != nil {
		return false, err
	}
	stderrPipe, err := readPipe(&reading, func(from io.Reader) { _, _ = io.Copy(stderr, from) }) // to the end, regardless of its content
	if err != nil {
		_ = stdout.Close() // it has no writer
		return false, err
	}
	command.Stdout, command.Stderr = stdout, stderrPipe
	exited := start(command)
	_, _ = stdout.Close(), stderrPipe.Close() // the program has its own
	if command.Process == nil {
		return false, fmt.Errorf("starting %s: %w", s.Path, <-exited)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	})
	defer stop()
	s.Log.Info("Deployer started", "pid", command.Process.Pid)
	for _, placed := range s.Placed {
		placed.forgetReports()
	}
	watched, ended := context.WithCancel(context.WithoutCancel(ctx))
	defer ended()
	go watchdog.run(watched, func() { _ = command.Process.Kill() }) // it may have ended by itself
	err = s.sendOrders(orders, exited)
	stop()
	reading.Wait()
	if err != nil {
		return false, s.crashed(err, watchdog, stderr.cause)
	}
	if ctx.Err() == nil {
		s.Log.Info("Deployer ended: nothing is left to deploy or to watch")
	}
	return emptied, nil
}

// readPipe makes a pipe and reads its output until its input is closed.
func readPipe(reading *sync.WaitGroup, read func(io.Reader)) (into *os.File, err error) {
	from, into, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", protocol.Program, err)
	}
	reading.Go(func() {
		read(from)
		_ = from.Close() // it has no writer any more
	})
	return into, nil
}

// crashed names the BundleDeployment behind a crash of the program, if it is known.
func (s *Supervisor) crashed(err error, watchdog *watchdog, stderr string) error {
	var status *exec.ExitError
	if !errors.As(err, &status) {
		return fmt.Errorf("running %s: %w", protocol.Program, err)
	}
	if status.ExitCode() == protocol.ExitLeaseLost {
		return &crash{
			explained: true, cause: fmt.Errorf("%s lost its Lease, which allows one deployer at a time, and starts again",
				protocol.Program),
		}
	}
	inFlight, stuck := watchdog.inFlightOrOverdue()
	cause := cmp.Or(stuck, stderr, status.Error())
	if culprit := s.suspects.add(inFlight, cause, s.Clock.Now()); culprit != "" {
		s.Log.Info("A BundleDeployment ended the deployer and is delayed", "deployment", culprit, "reason", cause)
	}
	return &crash{explained: len(inFlight) > 0, cause: fmt.Errorf(
		"the deployer %s of this cluster ended unexpectedly (%s) and starts again; read the agent's log", protocol.Program, cause)}
}

// sendOrders sends the order, and again after each renewal of the credential, until the program
// ends.
func (s *Supervisor) sendOrders(orders io.WriteCloser, exited <-chan error) error {
	defer func() { _ = orders.Close() }() // the program has ended
	for {
		order := s.Order()
		order.Suspects = s.suspects.list()
		if err := order.Send(orders); err != nil {
			// The program ended; its exit has the reason.
			return <-exited
		}
		select {
		case err := <-exited:
			return err
		case <-s.Renewed:
		}
	}
}
