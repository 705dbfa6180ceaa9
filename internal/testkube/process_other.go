//go:build !linux

package testkube

import "os/exec"

// runUntilParentDies starts the command and returns a channel that gets its end and is then closed. Only Linux ends it when the
// test is killed.
func runUntilParentDies(command *exec.Cmd) <-chan error { return run(command, func() {}) }
