package cluster

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

const lockName = "lock"

var errRunning = errors.New("cluster is running")

// lock takes the cluster for this process until the file is closed, also by
// the death of the process. It fails with errRunning while another holds it.
func (d Dir) lock() (*os.File, error) {
	for {
		file, err := os.OpenFile(d.file(lockName), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("locking cluster %s: %w", d.Name, err)
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			closeErr := file.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, errRunning
			}
			return nil, errors.Join(fmt.Errorf("locking cluster %s: %w", d.Name, err), closeErr)
		}
		// A delete may have removed the file between open and lock.
		held, err := file.Stat()
		if err != nil {
			return nil, fmt.Errorf("locking cluster %s: %w", d.Name, err)
		}
		if current, err := os.Stat(d.file(lockName)); err == nil && os.SameFile(held, current) {
			return file, nil
		}
		if err := file.Close(); err != nil {
			return nil, fmt.Errorf("locking cluster %s: %w", d.Name, err)
		}
		if err := os.MkdirAll(d.Path, 0o700); err != nil {
			return nil, fmt.Errorf("creating the state of cluster %s: %w", d.Name, err)
		}
	}
}

// running reports whether an `up` holds the cluster.
func (d Dir) running() (bool, error) {
	file, err := os.Open(d.file(lockName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at the lock of cluster %s: %w", d.Name, err)
	}
	// A shared lock, so that two such checks do not see each other.
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if closeErr := file.Close(); closeErr != nil {
		return false, fmt.Errorf("looking at the lock of cluster %s: %w", d.Name, closeErr)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at the lock of cluster %s: %w", d.Name, err)
	}
	return false, nil
}
