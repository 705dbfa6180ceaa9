//go:build !linux

package process

import (
	"os/exec"
	"syscall"
)

// attributes make the child the leader of a group of its own. Without the Linux parent-death
// signal, children of a killed parent live on until the next start of the cluster.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// Start starts a command so that it ends with this process.
func Start(cmd *exec.Cmd) error { return cmd.Start() }
