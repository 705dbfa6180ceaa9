package deployer

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
)

// run runs the program once. It returns no error if the program found nothing to do, and whether it emptied the member. When ctx ends the program
// is asked to end, which it does when what is under way has ended.
func (s *Supervisor) run(ctx context.Context) (emptied bool, err error) {
	if _, err := os.Stat(s.Path); err != nil {
		return false, fmt.Errorf("nothing is deployed on this cluster, because the program %s is missing beside the agent's (%w): "+
			"use an image that has it, or install it there", Program, err)
	}
	command := exec.Command(s.Path, s.Arguments...)
	orders, err := command.StdinPipe()
	if err != nil {
		return false, fmt.Errorf("starting %s: %w", Program, err)
	}
	dog, words := newWatchdog(s.Clock, cmp.Or(s.Silence, silence)), &lastWords{to: os.Stderr}
	var hearing sync.WaitGroup
	said, err := hear(&hearing, func(answers io.Reader) {
		Hear(answers, func(answer Answer) {
			dog.take(answer)
			emptied = emptied || answer.Emptied
			s.heed(ctx, answer)
			dog.listens()
		})
	})
	if err != nil {
		return false, err
	}
	complained, err := hear(&hearing, func(from io.Reader) { _, _ = io.Copy(words, from) }) // to the end, whatever it was
	if err != nil {
		_ = said.Close() // nobody writes
		return false, err
	}
	command.Stdout, command.Stderr = said, complained
	exited := start(command)
	_, _ = said.Close(), complained.Close() // the program has its own
	if command.Process == nil {
		return false, fmt.Errorf("starting %s: %w", s.Path, <-exited)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	})
	defer stop()
	s.Log.Info("deployer started", "pid", command.Process.Pid)
	for _, placed := range s.Placed {
		placed.untold()
	}
	watched, ended := context.WithCancel(context.WithoutCancel(ctx))
	defer ended()
	go dog.run(watched, func() { _ = command.Process.Kill() }) // it may have ended by itself
	err = s.instruct(orders, exited)
	stop()
	hearing.Wait()
	if err != nil {
		return false, s.crashed(err, dog, words.cause)
	}
	if ctx.Err() == nil {
		s.Log.Info("deployer ended: nothing is left to deploy or to watch")
	}
	return emptied, nil
}

// hear has what is written into a pipe read, until its other end is closed.
func hear(hearing *sync.WaitGroup, read func(io.Reader)) (into *os.File, err error) {
	from, into, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", Program, err)
	}
	hearing.Go(func() {
		read(from)
		_ = from.Close() // nobody writes any more
	})
	return into, nil
}

// crashed finds out on what the program ended.
func (s *Supervisor) crashed(err error, dog *watchdog, words string) error {
	var status *exec.ExitError
	if !errors.As(err, &status) {
		return fmt.Errorf("running %s: %w", Program, err)
	}
	if status.ExitCode() == ExitLeaseLost {
		return &crash{explained: true, cause: fmt.Errorf("%s lost the Lease by which one deployer at a time deploys on this cluster, and is started again", Program)}
	}
	underWay, stuck := dog.under()
	cause := cmp.Or(stuck, words, status.Error())
	if culprit := s.suspects.crashed(underWay, cause, s.Clock.Now()); culprit != "" {
		s.Log.Info("deployer ended on a BundleDeployment, which is delayed", "deployment", culprit, "reason", cause)
	}
	return &crash{explained: len(underWay) > 0, cause: fmt.Errorf(
		"what deploys on this cluster, %s, ended unexpectedly (%s) and is started again; the agent's log says why", Program, cause)}
}

// instruct sends the credential and each that replaces it, until the program has ended.
func (s *Supervisor) instruct(orders io.WriteCloser, exited <-chan error) error {
	defer func() { _ = orders.Close() }() // the program has ended
	for {
		order := s.Order()
		order.Suspects = s.suspects.list()
		if err := order.Send(orders); err != nil {
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
