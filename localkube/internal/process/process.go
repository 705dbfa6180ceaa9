// Package process starts child processes that cannot outlive their parent.
//
// Two nets catch a child after the death of its parent, for any cause. The kernel kills the direct
// child at once (die_linux.go). The next start of the same cluster finds processes started by the
// child, by their stored ids and by a mark in the environment (leftover.go).
//
// A process is never killed by its id alone: ids are reused, so the stored start time must match.
package process

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// outputDelay bounds the reading of a dead child's output while a process left behind keeps the
// pipe open.
const outputDelay = 2 * time.Second

// Spec describes a child process.
type Spec struct {
	// Name is the name of the process in messages and identity files.
	Name string
	// Path is the program, Args its arguments without the program's name.
	Path string
	Args []string
	// Arg0 is the program's own name; empty means Path.
	Arg0 string
	Env  []string
	Dir  string
	// Stdout and Stderr receive the output; nil discards it.
	Stdout, Stderr io.Writer
	// Start starts the command in a special place; nil is Start of this package.
	Start func(*exec.Cmd) error
}

// Process is a started child, the leader of a process group of its own.
type Process struct {
	Name string
	PID  int

	done   chan struct{}
	mark   string
	state  *os.ProcessState
	record string
}

// Group starts the processes of one cluster and stores their identities on disk.
type Group struct {
	// UsageFile receives a line for each ended process, with the program and the processor time in
	// seconds; empty means no such file.
	UsageFile string

	dir  string
	mark string
}

// NewGroup keeps the identity files in dir. The mark identifies the cluster in the environment of
// every process in the group.
func NewGroup(dir, mark string) (*Group, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of process files: %w", err)
	}
	return &Group{dir: dir, mark: mark}, nil
}

// Start starts a process and returns once it runs.
func (g *Group) Start(spec Spec) (*Process, error) {
	cmd := exec.Command(spec.Path, spec.Args...)
	if spec.Arg0 != "" {
		cmd.Args[0] = spec.Arg0
	}
	mark := g.mark + "/" + rand.Text()
	cmd.Env = append(append([]string{}, spec.Env...), markVariable+"="+mark)
	cmd.Dir = spec.Dir
	cmd.Stdout, cmd.Stderr = spec.Stdout, spec.Stderr
	cmd.SysProcAttr = attributes()
	cmd.WaitDelay = outputDelay
	start := spec.Start
	if start == nil {
		start = Start
	}
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	p := &Process{Name: spec.Name, PID: cmd.Process.Pid, mark: mark, done: make(chan struct{})}
	p.record = filepath.Join(g.dir, strconv.Itoa(p.PID))
	if err := writeRecord(p.record, p.PID, spec.Name); err != nil {
		killErr := syscall.Kill(-p.PID, syscall.SIGKILL)
		return nil, errors.Join(err, killErr, cmd.Wait())
	}
	go func() {
		// Wait's error only repeats ProcessState.
		_ = cmd.Wait()
		p.state = cmd.ProcessState
		p.reap()
		g.recordUsage(spec, p.state)
		close(p.done)
	}()
	return p, nil
}

// recordUsage appends the processor time of a process and of the children it has waited for. A
// component of localkube has its own name, another program the name of its file.
func (g *Group) recordUsage(spec Spec, state *os.ProcessState) {
	if g.UsageFile == "" || state == nil {
		return
	}
	name := spec.Name
	if spec.Arg0 == "" {
		name = filepath.Base(spec.Path)
	}
	file, err := os.OpenFile(g.UsageFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return // A missing measurement must not fail a cluster.
	}
	_, _ = fmt.Fprintf(file, "%s %.2f\n", name, (state.UserTime() + state.SystemTime()).Seconds())
	_ = file.Close()
}

// reap ends the processes left behind, in the group or in sessions of their own, and removes the
// identity file.
func (p *Process) reap() {
	// ESRCH, the normal answer, means that nothing was left.
	_ = syscall.Kill(-p.PID, syscall.SIGKILL)
	// Should /proc be unreadable, the next start of the cluster looks again.
	strays, _ := marked(p.mark)
	for _, pid := range strays {
		_ = syscall.Kill(pid, syscall.SIGKILL) // It may just have ended.
	}
	// A leftover file is harmless: its start time matches no process.
	_ = os.Remove(p.record)
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit returns the exit code. For a process ended by a signal it also returns the signal, and the
// code is 128 + signal. It may only be called after Done.
func (p *Process) Exit() (code int, signal syscall.Signal) {
	if p.state == nil {
		return -1, 0
	}
	if status, ok := p.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), status.Signal()
	}
	return p.state.ExitCode(), 0
}

// ExitText describes the end of the process for a person.
func (p *Process) ExitText() string {
	code, signal := p.Exit()
	if signal != 0 {
		return fmt.Sprintf("killed by signal %d (%s)", int(signal), signal)
	}
	return fmt.Sprintf("exit code %d", code)
}

// Signal sends a signal to the whole process group; a group that is already
// gone is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := syscall.Kill(-p.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %s to %s (pid %d): %w", sig, p.Name, p.PID, err)
	}
	return nil
}

// Stop sends SIGTERM, waits for at most grace or until cut is closed, then
// kills. It returns when the process has ended.
func (p *Process) Stop(grace time.Duration, cut <-chan struct{}) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	case <-cut:
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}
