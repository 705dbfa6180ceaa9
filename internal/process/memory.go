package process

import (
	"os"
	"runtime/debug"
)

// SaveMemory makes the program collect its garbage after the heap has grown by half, instead of
// doubled. The program idles most of the time, so memory costs more than the processor. The
// environment variable GOGC takes precedence.
func SaveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
