package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/muster-fleet/muster/localkube/internal/machine"
	"github.com/muster-fleet/muster/localkube/internal/process"
)

const (
	// downTimeout covers a pod's grace period of 30 s and the components.
	downTimeout  = 90 * time.Second
	downInterval = 50 * time.Millisecond
)

// Down stops a running cluster and waits for its end. It reports whether the cluster was running; a
// stopped cluster is no error.
func Down(dir Dir) (bool, error) {
	if _, err := os.Stat(dir.Path); errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("there is no cluster %s in %s; see: localkube list", dir.Name, dir.Path)
	}
	running, err := dir.running()
	if err != nil || !running {
		return false, err
	}
	owner, err := dir.owner()
	if err != nil {
		return false, err
	}
	// The lock shows that an `up` is running, the start time that it is this one.
	if !owner.Alive() {
		return false, fmt.Errorf("cluster %s is locked, but not by the recorded process %d; try again in a moment", dir.Name, owner.PID)
	}
	if err := syscall.Kill(owner.PID, syscall.SIGTERM); err != nil {
		return false, fmt.Errorf("stopping cluster %s (process %d): %w", dir.Name, owner.PID, err)
	}
	for deadline := time.Now().Add(downTimeout); ; time.Sleep(downInterval) {
		if running, err := dir.running(); err != nil || !running {
			return true, err
		}
		if time.Now().After(deadline) {
			return false, fmt.Errorf("cluster %s does not stop; see %s, or end process %d by hand", dir.Name, dir.file("logs"), owner.PID)
		}
	}
}

// Delete stops a cluster and removes its state.
func Delete(dir Dir) error {
	if _, err := os.Stat(dir.Path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no cluster %s in %s; see: localkube list", dir.Name, dir.Path)
	}
	if _, err := os.Stat(dir.file("state.json")); err != nil {
		return fmt.Errorf("%s is not a localkube state directory (it has no state.json); remove it by hand if you mean it", dir.Path)
	}
	if _, err := Down(dir); err != nil {
		return err
	}
	lock, err := dir.lock()
	if errors.Is(err, errRunning) {
		return fmt.Errorf("cluster %s was started again meanwhile; try again", dir.Name)
	}
	if err != nil {
		return err
	}
	err = dir.remove()
	return errors.Join(err, lock.Close())
}

// remove ends leftovers of a killed `up` and deletes the files. It deletes the state file last, so
// that an interrupted delete can be repeated.
func (d Dir) remove() error {
	if id, address, err := d.leftBehind(); err == nil {
		group, err := process.NewGroup(d.file("processes"), id)
		if err != nil {
			return err
		}
		if _, err := group.KillLeftovers(); err != nil {
			return err
		}
		if address.IsValid() {
			if err := machine.Remove(id); err != nil {
				return err
			}
		}
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return fmt.Errorf("deleting cluster %s: %w", d.Name, err)
	}
	for _, entry := range entries {
		if entry.Name() == "state.json" || entry.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(d.file(entry.Name())); err != nil {
			return fmt.Errorf("deleting cluster %s: %w", d.Name, err)
		}
	}
	d.release()
	if err := os.RemoveAll(d.Path); err != nil {
		return fmt.Errorf("deleting cluster %s: %w", d.Name, err)
	}
	return nil
}

// List prints a table of the clusters in a root.
func List(root string, out io.Writer) error {
	dirs := siblings(root)
	slices.SortFunc(dirs, func(a, b Dir) int { return strings.Compare(a.Name, b.Name) })
	if len(dirs) == 0 {
		_, err := fmt.Fprintf(out, "no clusters in %s; start one: localkube up NAME\n", root)
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tSTATUS\tURL\tKUBECONFIG") // Flush reports the error.
	for _, dir := range dirs {
		status, url := "stopped", "-"
		running, err := dir.running()
		if err != nil {
			return err
		}
		if running {
			status = "running"
		}
		if s, err := dir.load(); err == nil {
			url = s.url()
		} else {
			status = "unusable"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", dir.Name, status, url, dir.Kubeconfig())
	}
	return table.Flush()
}
