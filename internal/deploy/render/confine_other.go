//go:build !linux

package render

import "runtime/debug"

// confine asks the process to stay within its memory.
func confine(memory uint64) error {
	debug.SetMemoryLimit(int64(memory / 4 * 3))
	return nil
}
