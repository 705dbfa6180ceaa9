//go:build !linux

package machine

import (
	"errors"
	"os/exec"
)

var errOnlyLinux = errors.New("a node with containers needs Linux")

// Boot says that it cannot.
func Boot(Config) (*Machine, error) { return nil, errOnlyLinux }

// Start says that it cannot.
func (m *Machine) Start(*exec.Cmd) error { return errOnlyLinux }

// Halt has nothing to end.
func (m *Machine) Halt() error { return nil }

// Remove has nothing to remove.
func Remove(string) error { return nil }

// Init says that it cannot.
func Init(string) int { return 1 }

const cgroupParent = "localkube"
