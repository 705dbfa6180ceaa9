package deploy

import (
	"runtime/debug"
	"strconv"
	"syscall"

	"github.com/muster-fleet/muster/internal/deploy/render"
)

// most is the maximum memory of the program, regardless of the size of a chart. At this bound the
// program ends, not the agent. agentShare of a container's limit belongs to the agent, because the
// kernel ends everything in a container above its limit. The program needs at least least.
const (
	most       = 1 << 30
	agentShare = 96 << 20
	least      = 128 << 20
)

// confine keeps the program within half of the bound, and returns the rest for the rendering
// processes. A process with 128 MiB has a heap of at most 64 MiB in Go's mapping. Two of them fit
// into the smallest bound.
func confine(containerLimit string) (rest uint64, err error) {
	own := bound(containerLimit) / 2
	rest = max(render.LeastMemory, own)
	own = max(least, own)
	debug.SetMemoryLimit(int64(own / 4 * 3))
	return rest, syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: own, Max: own})
}

// bound returns the maximum memory of the program in a container with a limit in bytes; empty if
// there is none.
func bound(containerLimit string) uint64 {
	limit, err := strconv.ParseUint(containerLimit, 10, 64)
	if err != nil || limit >= most+agentShare {
		return most
	}
	return max(least, max(limit, agentShare)-agentShare)
}
