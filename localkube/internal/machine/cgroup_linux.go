package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	cgroupParent   = "localkube"
	cgroupDeadline = 10 * time.Second
	cgroupInterval = 20 * time.Millisecond
)

// hierarchies returns the mount points of cgroups: one directory with version 2, one per controller
// with version 1.
func hierarchies() ([]string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	return parseHierarchies(string(mounts)), nil
}

func parseHierarchies(mountinfo string) []string {
	const mountPoint = 4
	var found []string
	for line := range strings.Lines(mountinfo) {
		mount, kind, _ := strings.Cut(line, " - ")
		fields := strings.Fields(mount)
		if len(fields) > mountPoint && (strings.HasPrefix(kind, "cgroup ") || strings.HasPrefix(kind, "cgroup2 ")) &&
			!slices.Contains(found, fields[mountPoint]) {
			found = append(found, fields[mountPoint])
		}
	}
	return found
}

// createCgroup makes the cgroup in every hierarchy. A kubelet makes the cgroups of the pods in it.
func createCgroup(id string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		parent := root
		for _, name := range []string{cgroupParent, id} {
			passControllers(parent)
			group := filepath.Join(parent, name)
			if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("making cgroup %s: %w", group, err)
			}
			if err := inheritCPUs(parent, group); err != nil {
				return err
			}
			parent = group
		}
		passControllers(parent)
	}
	return nil
}

// passControllers gives the children of a cgroup of version 2 its controllers. A kubelet reports
// missing ones itself.
func passControllers(group string) {
	controllers, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return // Version 1: all children have the controller.
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		_ = os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
}

// inheritCPUs fills the empty values of a new cpuset in version 1. No process can enter it
// otherwise.
func inheritCPUs(parent, group string) error {
	if _, err := os.Stat(filepath.Join(group, "cgroup.controllers")); err == nil {
		return nil
	}
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the CPUs of a cgroup: %w", err)
		}
		if err := os.WriteFile(filepath.Join(group, name), bytes.TrimSpace(value), 0o644); err != nil {
			return fmt.Errorf("giving cgroup %s its CPUs: %w", group, err)
		}
	}
	return nil
}

// removeCgroup ends the processes in the cgroup and removes it, and the parent with the last one.
func removeCgroup(id string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		group := filepath.Join(root, cgroupParent, id)
		for deadline := time.Now().Add(cgroupDeadline); ; time.Sleep(cgroupInterval) {
			if err = removeTree(group); err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("removing cgroup %s: %w", group, err)
			}
		}
		_ = os.Remove(filepath.Join(root, cgroupParent)) // It stays while there are others.
	}
	return nil
}

// removeTree removes a cgroup and its children. It fails while processes end.
func removeTree(group string) error {
	entries, err := os.ReadDir(group)
	if notThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(group, entry.Name())); err != nil {
				return err
			}
		}
	}
	processes, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if err != nil && !notThere(err) {
		return err
	}
	for line := range strings.FieldsSeq(string(processes)) {
		// 0 is a process invisible to this one.
		if pid, err := strconv.Atoi(line); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // It may just have ended.
		}
	}
	if err := os.Remove(group); err != nil && !notThere(err) {
		return err
	}
	return nil
}
