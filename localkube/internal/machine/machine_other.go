//go:build !linux

package machine

import (
	"errors"
	"os/exec"
)

var errOnlyLinux = errors.New("a node with containers needs Linux")

// Boot returns an error.
func Boot(Config) (*Machine, error) { return nil, errOnlyLinux }

// Start returns an error.
func (m *Machine) Start(*exec.Cmd) error { return errOnlyLinux }

// Halt has nothing to end.
func (m *Machine) Halt() error { return nil }

// Remove has nothing to remove.
func Remove(string) error { return nil }

// Init returns 1.
func Init(string) int { return 1 }

const cgroupParent = "localkube"
