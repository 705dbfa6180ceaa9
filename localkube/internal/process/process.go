// Package process starts child processes that cannot outlive their parent.
//
// Two nets catch a child when the parent dies, however it dies. The kernel
// kills the direct child at once (die_linux.go). Whatever that child had
// started itself is found at the next start of the same cluster, by the
// recorded process ids and by a mark in the environment (leftover.go). A
// process is never killed on its id alone: ids are reused, so the start time
// recorded beside it has to match.
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

// outputDelay is how long a dead child's output is still read when a process
// it left behind keeps the pipe open.
const outputDelay = 2 * time.Second

// Spec describes a child process.
type Spec struct {
	// Name is what the process is called in messages and records.
	Name string
	// Path is the program, Args its arguments without the program's name.
	Path string
	Args []string
	// Arg0 is what the program sees as its own name; empty means Path.
	Arg0 string
	Env  []string
	Dir  string
	// Stdout and Stderr receive the output; nil discards it.
	Stdout, Stderr io.Writer
	// Start starts the command if it has to be done in a special place; nil
	// is Start of this package.
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

// Group starts the processes of one cluster and remembers them on disk.
type Group struct {
	// UsageFile receives a line with the program and the processor time, in
	// seconds, of each process that has ended; empty means no such file.
	UsageFile string

	dir  string
	mark string
}

// NewGroup keeps its records in dir. The mark identifies the cluster in the
// environment of every process started through the group.
func NewGroup(dir, mark string) (*Group, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating process record directory: %w", err)
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
		// Wait's error only repeats what ProcessState says.
		_ = cmd.Wait()
		p.state = cmd.ProcessState
		p.reap()
		g.recordUsage(spec, p.state)
		close(p.done)
	}()
	return p, nil
}

// recordUsage appends the processor time of a process, its children included
// as far as it has waited for them. A component of localkube is named by
// itself, another program by its file.
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
		return // Whoever measures misses a line; no cluster may fail for it.
	}
	_, _ = fmt.Fprintf(file, "%s %.2f\n", name, (state.UserTime() + state.SystemTime()).Seconds())
	_ = file.Close()
}

// reap ends what the process left behind, in its group or in sessions of
// their own, and drops the record.
func (p *Process) reap() {
	// ESRCH, the normal answer, means that nothing was left.
	_ = syscall.Kill(-p.PID, syscall.SIGKILL)
	// Should /proc be unreadable, the next start of the cluster looks again.
	strays, _ := marked(p.mark)
	for _, pid := range strays {
		_ = syscall.Kill(pid, syscall.SIGKILL) // It may just have ended.
	}
	// A record that stays is harmless: its start time will match nothing.
	_ = os.Remove(p.record)
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit returns the exit code, and the signal that ended the process if one
// did (the code is then 128 + signal). It may only be called after Done.
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
