package process

import (
	"os"
	"runtime/debug"
)

// SaveMemory has the program collect its garbage when the heap has grown by half, instead of doubled: it idles most of the time, so that memory is
// dearer than the processor. The environment variable GOGC comes first.
func SaveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
