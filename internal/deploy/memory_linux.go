package deploy

import (
	"bufio"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// most is how much memory the program may take, however large a chart; at that the kernel refuses it more and it ends, it and not the agent.
// Where the container has a limit, agentShare of it is the agent's: the kernel ends all of a container that goes over its limit. With less than
// least the program cannot do its work.
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

// trim gives memory back: the heap that a deployment needed, and the pages of the program that only its start did. Two thirds of what the
// program occupies after the start are such pages, of packages that only register themselves; what is used again the kernel finds in the file.
func trim() {
	debug.FreeOSMemory()
	own, err := os.Executable()
	if err != nil {
		return
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	var start, end uint64
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 3 && fields[0] == "Anonymous:":
			// Pages that a loader changed are not in the file: without any, nothing of this mapping can be lost.
			if end > start && fields[1] == "0" {
				_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(start), uintptr(end-start), syscall.MADV_DONTNEED) // the kernel may decline
			}
			start, end = 0, 0
		case len(fields) >= 5 && !strings.HasSuffix(fields[0], ":"):
			start, end = readOnly(fields, own)
		}
	}
}

// readOnly is the range of a mapping that nobody can write to and that is a part of the program, given the line that begins its description:
// start-end permissions offset device inode path.
func readOnly(fields []string, program string) (start, end uint64) {
	if len(fields) != 6 || fields[5] != program || strings.Contains(fields[1], "w") {
		return 0, 0
	}
	from, to, _ := strings.Cut(fields[0], "-")
	start, err := strconv.ParseUint(from, 16, 64)
	if err != nil {
		return 0, 0
	}
	if end, err = strconv.ParseUint(to, 16, 64); err != nil {
		return 0, 0
	}
	return start, end
}
