package hostnode

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	maxLogBytes = 10 << 20
	// maxLineBytes bounds the buffer for a line without an end.
	maxLineBytes = 64 << 10
	timeFormat   = "2006-01-02T15:04:05.000000000Z07:00"
)

// logFile is the log of one run of a container: each line with its time in front. At its limit it
// becomes <path>.1 and starts again, so that at most twice the limit is kept. It is both written
// and followed here.
type logFile struct {
	path string

	mu      sync.Mutex
	file    *os.File
	size    int64
	partial []byte
	// grown is closed and replaced whenever there is more to read.
	grown      chan struct{}
	generation int
	closed     bool
}

// newLogFile starts the log of a run and deletes the logs before the previous one.
func newLogFile(path string) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("creating a log directory: %w", err)
	}
	if err := keepNewestLogs(filepath.Dir(path), 1); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	return &logFile{path: path, file: file, size: info.Size(), grown: make(chan struct{})}, nil
}

// Write takes output in any pieces and writes whole lines.
func (l *logFile) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, data...)
	now := time.Now().UTC()
	for {
		end := bytes.IndexByte(l.partial, '\n')
		if end < 0 && len(l.partial) < maxLineBytes {
			return len(data), nil
		}
		if end < 0 {
			end = len(l.partial)
		}
		if err := l.writeLine(now, l.partial[:end]); err != nil {
			return 0, err
		}
		l.partial = l.partial[min(end+1, len(l.partial)):]
	}
}

func (l *logFile) writeLine(now time.Time, line []byte) error {
	entry := append(now.AppendFormat(nil, timeFormat), ' ')
	entry = append(append(entry, line...), '\n')
	if l.size+int64(len(entry)) > maxLogBytes {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	n, err := l.file.Write(entry)
	l.size += int64(n)
	if err != nil {
		return fmt.Errorf("writing log %s: %w", l.path, err)
	}
	close(l.grown)
	l.grown = make(chan struct{})
	return nil
}

func (l *logFile) rotate() error {
	if err := errors.Join(l.file.Close(), os.Rename(l.path, l.path+".1")); err != nil {
		return fmt.Errorf("rotating log %s: %w", l.path, err)
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("rotating log %s: %w", l.path, err)
	}
	l.file, l.size = file, 0
	l.generation++
	return nil
}

// close ends the log; followers get the rest and the end.
func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		// The process is gone, so no process needs the error of a full disk.
		_ = l.writeLine(time.Now().UTC(), l.partial)
		l.partial = nil
	}
	_ = l.file.Close() // A failing close loses no written data here.
	l.closed = true
	close(l.grown)
	l.grown = make(chan struct{})
}

// state returns the state for a follower: the generation of the file, whether the log has ended,
// and the channel to wait for.
func (l *logFile) state() (generation int, closed bool, grown <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.generation, l.closed, l.grown
}
