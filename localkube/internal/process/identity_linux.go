package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// startTime returns a value that identifies a process across reboots, together with the pid. It has
// the boot id and the start time in clock ticks since boot.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", fmt.Errorf("reading the start time of pid %d: %w", pid, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	ticks, err := parseStartTime(stat)
	if err != nil {
		return "", fmt.Errorf("reading the start time of pid %d: %w", pid, err)
	}
	return strings.TrimSpace(string(boot)) + "/" + ticks, nil
}

// parseStartTime finds field 22 of /proc/<pid>/stat. The second field, the
// program's name in parentheses, may hold spaces and parentheses itself.
func parseStartTime(stat []byte) (string, error) {
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	const startTimeAfterName = 22 - 3
	if end < 0 || len(fields) <= startTimeAfterName {
		return "", fmt.Errorf("unexpected stat line %q", stat)
	}
	if fields[0] == "Z" {
		return "", fmt.Errorf("process has ended: %w", os.ErrNotExist)
	}
	return fields[startTimeAfterName], nil
}

// marked returns the processes of this user with the mark in their environment, or with the mark
// and a suffix after a slash.
func marked(mark string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	want := []byte(markVariable + "=" + mark)
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// Unreadable means another user's process or one that just ended.
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue
		}
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			if rest, found := bytes.CutPrefix(variable, want); found && (len(rest) == 0 || rest[0] == '/') {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids, nil
}
