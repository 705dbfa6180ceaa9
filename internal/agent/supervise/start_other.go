//go:build !linux

package supervise

import (
	"os/exec"

	"github.com/muster-fleet/muster/internal/process"
)

// start starts the program, which ends when its standard input does.
func start(command *exec.Cmd) <-chan error { return process.Start(command, func() {}) }
