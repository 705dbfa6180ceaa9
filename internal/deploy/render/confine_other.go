//go:build !linux

package render

import "runtime/debug"

// confine sets a soft memory limit for the process.
func confine(memory uint64) error {
	debug.SetMemoryLimit(int64(memory / 4 * 3))
	return nil
}
