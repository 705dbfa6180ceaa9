package deploy

import (
	"runtime/debug"
	"strconv"
	"syscall"
)

// most is how much memory the program may take, however large a chart: at that bound the program ends, and not the agent. Of a container's limit
// agentShare is the agent's, because the kernel ends everything in a container that goes over its limit. The program cannot work with less than
// least.
const (
	most       = 1 << 30
	agentShare = 96 << 20
	least      = 128 << 20
)

// confine keeps the program within its bound.
func confine(containerLimit string) error {
	bound := bound(containerLimit)
	debug.SetMemoryLimit(int64(bound / 4 * 3))
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: bound, Max: bound})
}

// bound is how much memory the program may take in a container with a limit in bytes; empty if there is none.
func bound(containerLimit string) uint64 {
	limit, err := strconv.ParseUint(containerLimit, 10, 64)
	if err != nil || limit >= most+agentShare {
		return most
	}
	return max(least, max(limit, agentShare)-agentShare)
}
