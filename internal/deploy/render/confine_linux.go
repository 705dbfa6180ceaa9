package render

import (
	"fmt"
	"runtime/debug"
	"syscall"
)

// confine keeps the process within its memory.
func confine(memory uint64) error {
	debug.SetMemoryLimit(int64(memory / 4 * 3))
	if raceDetector {
		return nil
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: memory, Max: memory}); err != nil {
		return fmt.Errorf("limiting the memory of a process that renders: %w", err)
	}
	return nil
}
