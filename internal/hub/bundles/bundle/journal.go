package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

const (
	// maxDeaths is the number of hub exits during the check of a Bundle before the Bundle is set
	// aside. A single exit may be chance.
	maxDeaths = 2
	// maxEntries limits the Bundles in a journal.
	maxEntries = 1000
)

// journal keeps in a file the Bundle being checked, if the check takes much memory. If the kubelet
// restarts a killed hub, the next hub finds this Bundle there.
type journal struct {
	// path of the file; empty if no file is written.
	path string

	mu      sync.Mutex
	entries map[types.UID]entry
}

// entry is a Bundle with a check begun but not ended by a hub.
type entry struct {
	Bundle     string `json:"bundle"`
	Generation int64  `json:"generation"`
	Deaths     int    `json:"deaths"`
	Checking   bool   `json:"checking,omitempty"`
}

// openJournal reads the journal of an earlier hub in a directory. Without a directory nothing is
// written.
func openJournal(dir string) (*journal, error) {
	j := &journal{entries: map[types.UID]entry{}}
	if dir == "" {
		return j, nil
	}
	j.path = filepath.Join(dir, "bundles.json")
	text, err := os.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which Bundles a hub before has checked: %w", err)
	}
	if err := json.Unmarshal(text, &j.entries); err != nil {
		j.entries = map[types.UID]entry{} // the hub was killed while it wrote
	}
	for uid, e := range j.entries {
		if e.Checking {
			e.Deaths, e.Checking = e.Deaths+1, false
			j.entries[uid] = e
		}
	}
	return j, j.write()
}

// setAside returns the reason why a Bundle's current version is not checked; "" if it may be.
func (j *journal) setAside(bundle *fleet.Bundle) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.entries[bundle.UID]
	if e.Generation != bundle.Generation || e.Deaths < maxDeaths {
		return ""
	}
	return fmt.Sprintf("the hub does not check it any more, because a hub ended %d times during the check: give the hub more memory, and "+
		"restart it with kubectl rollout restart, or make the YAML of the Bundle smaller", e.Deaths)
}

// begin notes the begin of a Bundle's check. The returned function ends the check.
func (j *journal) begin(bundle *fleet.Bundle) (end func() error, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.entries[bundle.UID]
	if e.Generation != bundle.Generation {
		e = entry{Bundle: bundle.Namespace + "/" + bundle.Name, Generation: bundle.Generation}
	}
	e.Checking = true
	if len(j.entries) >= maxEntries {
		clear(j.entries)
	}
	j.entries[bundle.UID] = e
	return func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.entries, bundle.UID)
		return j.write()
	}, j.write()
}

func (j *journal) write() error {
	if j.path == "" {
		return nil
	}
	text, err := json.Marshal(j.entries)
	if err != nil {
		return err
	}
	if err := os.WriteFile(j.path+".new", text, 0o600); err != nil {
		return fmt.Errorf("noting which Bundle is being checked: %w", err)
	}
	return os.Rename(j.path+".new", j.path)
}
