package process

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts a command, as start does. The kernel ends it with the thread of its start, so Start
// keeps the thread until then.
func Start(command *exec.Cmd, begun func()) <-chan error {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return start(command, runtime.LockOSThread, begun)
}
