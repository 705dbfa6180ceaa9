package process

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// attributes make the child the leader of a group of its own, so that a terminal's Ctrl-C reaches
// only the parent. The kernel kills the child when the parent dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

type startRequest struct {
	cmd  *exec.Cmd
	done chan error
}

var lastingThread = sync.OnceValue(func() chan<- startRequest {
	requests := make(chan startRequest)
	go func() {
		// "Parent death" is the death of the forking thread, and the runtime
		// ends idle threads. This one is never unlocked and never ends.
		runtime.LockOSThread()
		for request := range requests {
			request.done <- request.cmd.Start()
		}
	}()
	return requests
})

// Start starts a command so that it ends with this process.
func Start(cmd *exec.Cmd) error {
	request := startRequest{cmd: cmd, done: make(chan error, 1)}
	lastingThread() <- request
	return <-request.done
}
