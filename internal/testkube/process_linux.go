package testkube

import (
	"os/exec"
	"runtime"
	"syscall"
)

// runUntilParentDies starts the command and returns a channel that gets its end and is then closed. The kernel ends the command
// with the thread that started it, so that thread is kept for as long.
func runUntilParentDies(command *exec.Cmd) <-chan error {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	return run(command, runtime.LockOSThread)
}
