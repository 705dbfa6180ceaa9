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
const most = 1 << 30

// confine keeps the program within most.
func confine() error {
	debug.SetMemoryLimit(most / 4 * 3)
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most})
}

// trim gives memory back: the heap that a deployment needed, and the pages of the program that only its start did. Two thirds of what the
// program occupies after the start are such pages, of packages that only register themselves; what is used again the kernel finds in the file.
func trim() {
	debug.FreeOSMemory()
	own, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		// start-end permissions offset device inode path; what is writable may differ from the file.
		fields := strings.Fields(lines.Text())
		if len(fields) != 6 || fields[5] != own || strings.Contains(fields[1], "w") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, startErr := strconv.ParseUint(from, 16, 64)
		end, endErr := strconv.ParseUint(to, 16, 64)
		if startErr == nil && endErr == nil {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(start), uintptr(end-start), syscall.MADV_DONTNEED) // the kernel may decline
		}
	}
}
