//go:build !linux

package supervise

import (
	"os/exec"

	"github.com/muster-fleet/muster/internal/process"
)

// start starts the program. It ends with its standard input.
func start(command *exec.Cmd) <-chan error { return process.Start(command, func() {}) }
