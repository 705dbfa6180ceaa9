package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// markVariable carries the cluster's mark in the environment of every child.
const markVariable = "LOCALKUBE_ID"

const (
	killDeadline = 10 * time.Second
	killInterval = 10 * time.Millisecond
)

// Identity names one process permanently: a pid alone may be reused.
type Identity struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
	Name  string `json:"name,omitempty"`
}

// Self identifies the calling process.
func Self() (Identity, error) {
	return identify(os.Getpid())
}

func identify(pid int) (Identity, error) {
	start, err := startTime(pid)
	return Identity{PID: pid, Start: start}, err
}

// Alive reports whether exactly this process still runs.
func (id Identity) Alive() bool {
	start, err := startTime(id.PID)
	return err == nil && start == id.Start
}

func writeRecord(path string, pid int, name string) error {
	id, err := identify(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // It ended already; there is nothing to find later.
	}
	if err != nil {
		return err
	}
	id.Name = name
	data, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("encoding the process file of %s: %w", name, err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("recording %s (pid %d): %w", name, pid, err)
	}
	return nil
}

// KillLeftovers kills every process left behind by an earlier parent of this group. It returns
// their names or pids once all are gone.
func (g *Group) KillLeftovers() ([]string, error) {
	left, err := g.leftovers()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, id := range left {
		if id.Name == "" {
			id.Name = fmt.Sprintf("pid %d", id.PID)
		}
		names = append(names, id.Name)
		// The leader's group first; a marked process in another group, alone.
		if err := syscall.Kill(-id.PID, syscall.SIGKILL); err != nil {
			err = syscall.Kill(id.PID, syscall.SIGKILL)
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return names, fmt.Errorf("killing leftover %s (pid %d): %w", id.Name, id.PID, err)
			}
		}
	}
	for deadline := time.Now().Add(killDeadline); len(left) > 0; {
		if !left[0].Alive() {
			left = left[1:]
			continue
		}
		if time.Now().After(deadline) {
			return names, fmt.Errorf("leftover %s (pid %d) does not end; end it by hand", left[0].Name, left[0].PID)
		}
		time.Sleep(killInterval)
	}
	return names, g.dropRecords()
}

// leftovers returns the running processes with an identity file and any other process with the
// mark.
func (g *Group) leftovers() ([]Identity, error) {
	var left []Identity
	listed := map[int]bool{}
	entries, err := os.ReadDir(g.dir)
	if err != nil {
		return nil, fmt.Errorf("reading the process files: %w", err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(g.dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading a process file: %w", err)
		}
		var id Identity
		// A file cut short by the crash names no process; the mark finds the process.
		if json.Unmarshal(data, &id) == nil && id.PID > 1 && id.Alive() {
			left = append(left, id)
			listed[id.PID] = true
		}
	}
	pids, err := marked(g.mark)
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		if id, err := identify(pid); err == nil && !listed[pid] {
			left = append(left, id)
		}
	}
	return left, nil
}

func (g *Group) dropRecords() error {
	entries, err := os.ReadDir(g.dir)
	if err != nil {
		return fmt.Errorf("reading the process files: %w", err)
	}
	for _, entry := range entries {
		if err := os.Remove(filepath.Join(g.dir, entry.Name())); err != nil {
			return fmt.Errorf("removing a process file: %w", err)
		}
	}
	return nil
}
