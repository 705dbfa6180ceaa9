//go:build !linux

package process

import "os/exec"

// Start starts a command, as start does.
func Start(command *exec.Cmd, begun func()) <-chan error { return start(command, func() {}, begun) }
