package deploy

import (
	"runtime/debug"
	"strconv"
	"syscall"

	"github.com/muster-fleet/muster/internal/deploy/render"
)

// most is how much memory the program may take, however large a chart: at that bound the program ends, and not the agent. Of a container's limit
// agentShare is the agent's, because the kernel ends everything in a container that goes over its limit. The program cannot work with less than
// least.
const (
	most       = 1 << 30
	agentShare = 96 << 20
	least      = 128 << 20
)

// confine keeps the program within half of the bound, and returns how much is left for the processes
// that render charts. A process that may have 128 MiB has a heap of 64 MiB at most, as Go maps it: two
// of them fit into the smallest bound.
func confine(containerLimit string) (rest uint64, err error) {
	own := bound(containerLimit) / 2
	rest = max(render.LeastMemory, own)
	own = max(least, own)
	debug.SetMemoryLimit(int64(own / 4 * 3))
	return rest, syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: own, Max: own})
}

// bound is how much memory the program may take in a container with a limit in bytes; empty if there is none.
func bound(containerLimit string) uint64 {
	limit, err := strconv.ParseUint(containerLimit, 10, 64)
	if err != nil || limit >= most+agentShare {
		return most
	}
	return max(least, max(limit, agentShare)-agentShare)
}
