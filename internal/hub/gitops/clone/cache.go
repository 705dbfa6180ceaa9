package clone

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// maxCached bounds the bytes of all objects kept between two commits. The chart gives the program
	// 2 GiB, and the commits read at once may need 1 GiB more.
	maxCached = 768 << 20
	// maxPacks bounds the files of one repository. Each commit adds two, and nothing packs them again.
	maxPacks = 100
	// digits is the length of an address in the name of a directory.
	digits = 16
)

// Cache keeps the objects of repositories between two commits, so a new commit fetches only missing
// objects. Repositories of two owners share nothing, because their credentials differ.
type Cache struct {
	// Directory holds a directory for each repository.
	Directory string
	// Limit is the maximum of bytes; 0 for maxCached.
	Limit int64

	mutex   sync.Mutex
	entries map[string]*entry
	turn    int64
}

// entry is the directory of a repository.
type entry struct {
	size int64
	// used is the turn of the last use; busy is true during one.
	used int64
	busy bool
}

// name returns the name of a directory. Another address of the same owner gets another one.
func name(owner, address string) string { return owner + "-" + naming.Digest([]byte(address))[:digits] }

// take returns the directory for a repository, and false if another caller uses it. The caller uses
// it alone until done.
func (c *Cache) take(owner, address string) (directory string, done func(keep bool), free bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.entries == nil {
		c.entries = map[string]*entry{}
	}
	key := name(owner, address)
	e := c.entries[key]
	if e == nil {
		e = &entry{}
		c.entries[key] = e
	}
	if e.busy {
		return "", nil, false
	}
	e.busy = true
	directory = filepath.Join(c.Directory, key)
	return directory, func(keep bool) { c.done(key, directory, keep) }, true
}

// done keeps the directory of a repository or removes it, and makes room.
func (c *Cache) done(key, directory string, keep bool) {
	size, packs := measure(directory)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	e := c.entries[key]
	if e == nil || !keep || size > maxPack || packs > maxPacks {
		_ = os.RemoveAll(directory)
		delete(c.entries, key)
		return
	}
	c.turn++
	e.size, e.used, e.busy = size, c.turn, false
	total := int64(0)
	for _, other := range c.entries {
		total += other.size
	}
	for _, oldest := range slices.SortedFunc(maps.Keys(c.entries), func(a, b string) int {
		return cmp.Compare(c.entries[a].used, c.entries[b].used)
	}) {
		if other := c.entries[oldest]; total > cmp.Or(c.Limit, maxCached) && !other.busy {
			total -= other.size
			c.remove(oldest)
		}
	}
}

// Drop removes the cached objects of an owner.
func (c *Cache) Drop(owner string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for key, e := range c.entries {
		if rest, found := strings.CutPrefix(key, owner+"-"); found && len(rest) == digits && !e.busy {
			c.remove(key)
		}
	}
}

func (c *Cache) remove(key string) {
	_ = os.RemoveAll(filepath.Join(c.Directory, key))
	delete(c.entries, key)
}

// measure returns the bytes and the number of files below a directory.
func measure(directory string) (size int64, files int) {
	_ = filepath.WalkDir(directory, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what cannot be read counts as nothing
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
			files++
		}
		return nil
	})
	return size, files
}

// objects returns a directory for the objects of the repository. Without a cache it is removed
// afterwards.
func (r *Repository) objects() (directory string, done func(keep bool), err error) {
	if r.Cache != nil && r.Owner != "" {
		if directory, done, free := r.Cache.take(r.Owner, r.URL.String()); free {
			return directory, done, nil
		}
	}
	directory, err = os.MkdirTemp(r.Directory, "clone-")
	if err != nil {
		return "", nil, fmt.Errorf("making a directory for the objects of the repository: %w", err)
	}
	return directory, func(bool) { _ = os.RemoveAll(directory) }, nil
}
