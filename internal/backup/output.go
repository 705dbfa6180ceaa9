package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// readableByOwner is the mode of a file.
	readableByOwner = 0o600
	prefix          = "muster-backup-"
	suffix          = ".age"
	unfinished      = ".unfinished"
	stamp           = "20060102T150405Z"
)

// TakeFile writes a backup to a new file, and returns its size. It replaces no file. A failed
// backup leaves no file of this name behind.
func TakeFile(ctx context.Context, config *rest.Config, o Options, path string) (s Summary, size int64, err error) {
	if _, err := os.Lstat(path); err == nil {
		return s, 0, fmt.Errorf("writing the backup: %s exists already, and is not replaced", path)
	}
	part, err := os.OpenFile(path+unfinished, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, readableByOwner)
	if err != nil {
		return s, 0, fmt.Errorf("writing the backup: %w", err)
	}
	s, err = Take(ctx, config, o, part)
	if err == nil {
		size, err = part.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		err = part.Sync()
	}
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return s, 0, errors.Join(err, os.Remove(part.Name()))
	}
	return s, size, nil
}

// Directory holds backups, with the times in their names.
type Directory struct {
	Path string
	// Keep is the number of newest backups to keep; 0 keeps all.
	Keep int
}

// Take writes a backup into the directory, and returns its path and size. It then deletes the
// oldest backups there.
func (d Directory) Take(ctx context.Context, config *rest.Config, o Options, now time.Time) (s Summary, path string, size int64,
	err error) {
	path = filepath.Join(d.Path, prefix+now.UTC().Format(stamp)+suffix)
	if s, size, err = TakeFile(ctx, config, o, path); err == nil && d.Keep > 0 {
		err = d.prune()
	}
	return s, path, size, err
}

func (d Directory) prune() error {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return fmt.Errorf("looking for older backups: %w", err)
	}
	var own []string
	for _, entry := range entries {
		finished := strings.TrimSuffix(entry.Name(), unfinished)
		if !strings.HasPrefix(finished, prefix) || !strings.HasSuffix(finished, suffix) || !entry.Type().IsRegular() {
			continue
		}
		if finished != entry.Name() { // left by a killed run
			err = errors.Join(err, os.Remove(filepath.Join(d.Path, entry.Name())))
			continue
		}
		own = append(own, entry.Name())
	}
	slices.Sort(own)
	for _, old := range own[:max(0, len(own)-d.Keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(d.Path, old)))
	}
	if err != nil {
		return fmt.Errorf("deleting older backups: %w", err)
	}
	return nil
}
