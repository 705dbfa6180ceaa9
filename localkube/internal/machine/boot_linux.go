package machine

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/muster-fleet/muster/localkube/internal/process"
)

const namespaces = unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC

// Boot starts a machine and connects it with this one.
func Boot(config Config) (_ *Machine, err error) {
	unlock, err := lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	m := &Machine{id: config.ID}
	if m.init, err = startInit(config); err != nil {
		return nil, fmt.Errorf("starting the first process of the machine: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.init.Stop(0, nil), removeCgroup(config.ID), disconnect(config.ID))
		}
	}()
	if err := connect(config, m.init.PID); err != nil {
		return nil, fmt.Errorf("connecting the machine: %w", err)
	}
	if err := createCgroup(config.ID); err != nil {
		return nil, fmt.Errorf("making a cgroup for the machine: %w", err)
	}
	m.starts, err = startThread(m.init.PID)
	return m, err
}

// Start starts a child process inside the machine. It ends with the machine.
func (m *Machine) Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr != nil {
		// It would kill itself: its parent is invisible from inside.
		cmd.SysProcAttr.Pdeathsig = 0
	}
	request := startRequest{cmd: cmd, done: make(chan error, 1)}
	m.starts <- request
	return <-request.done
}

// Halt ends all processes in the machine and removes it.
func (m *Machine) Halt() error {
	close(m.starts)
	return errors.Join(m.init.Stop(0, nil), Remove(m.id))
}

// Remove removes the rest of a machine after the end of its first process. With the last machine it
// also removes the shared parts.
func Remove(id string) error {
	unlock, err := lock()
	if err != nil {
		return err
	}
	defer unlock()
	return errors.Join(removeCgroup(id), disconnect(id))
}

// lock keeps others from connecting a machine while the shared parts of the last one are removed.
// It locks a directory, so that it leaves nothing.
func lock() (unlock func(), err error) {
	directory, err := os.Open("/run")
	if err != nil {
		return nil, fmt.Errorf("locking the network of the machines: %w", err)
	}
	if err := unix.Flock(int(directory.Fd()), unix.LOCK_EX); err != nil {
		_ = directory.Close() // The other error is enough.
		return nil, fmt.Errorf("locking the network of the machines: %w", err)
	}
	return func() { _ = directory.Close() }, nil // It was only read.
}

// startInit starts the first process and waits until it has prepared the machine.
func startInit(config Config) (*process.Process, error) {
	if err := os.MkdirAll(config.Kubelet, 0o755); err != nil {
		return nil, fmt.Errorf("making kubelet's directory: %w", err)
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	answer, ready, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer answer.Close()
	started, err := config.Group.Start(process.Spec{
		Name: "machine", Path: executable, Arg0: "localkube", Args: []string{InitCommand, config.Kubelet},
		Env: os.Environ(), Dir: "/", Stdout: ready, Stderr: config.Log,
		Start: func(cmd *exec.Cmd) error {
			cmd.SysProcAttr.Cloneflags = namespaces
			return process.Start(cmd)
		},
	})
	// The child has its own descriptor. Without closing this one, reading would not end.
	if err := errors.Join(err, ready.Close()); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(answer).ReadString('\n')
	if strings.TrimSpace(line) != initReady {
		return nil, errors.Join(fmt.Errorf("it ended: %s (%w)", strings.TrimSpace(line), err), started.Stop(0, nil))
	}
	return started, nil
}

// startThread makes a thread inside the machine that starts processes until the channel is closed.
// The parent of a child is still this process. It can wait for the child, and the child ends with
// it.
func startThread(pid int) (chan<- startRequest, error) {
	requests, entered := make(chan startRequest), make(chan error)
	go func() {
		// Never unlocked: the runtime ends a changed thread.
		runtime.LockOSThread()
		err := enter(pid)
		entered <- err
		if err != nil {
			return
		}
		for request := range requests {
			request.done <- request.cmd.Start()
		}
	}()
	return requests, <-entered
}

// enter moves this thread into the namespaces of a process. For process ids it moves the thread's
// children.
func enter(pid int) error {
	// The kernel refuses another mount namespace to threads with a shared working directory.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("entering the machine: %w", err)
	}
	names := []string{"net", "ipc", "pid", "mnt"} // The last one changes /proc.
	files := make([]*os.File, len(names))
	for i, name := range names {
		file, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
		if err != nil {
			return fmt.Errorf("entering the machine: %w", err)
		}
		defer file.Close()
		files[i] = file
	}
	for i, file := range files {
		if err := unix.Setns(int(file.Fd()), 0); err != nil {
			return fmt.Errorf("entering the %s namespace of the machine: %w", names[i], err)
		}
	}
	return nil
}

// notThere reports whether an error is about a missing object.
func notThere(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.ENODEV)
}
