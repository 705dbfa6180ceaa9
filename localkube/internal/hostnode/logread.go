package hostnode

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// logOptions are the options of `kubectl logs`.
type logOptions struct {
	follow, timestamps bool
	tail               int // lines; negative is all
	since              time.Time
	limit              int64 // bytes; 0 is all
}

// errLimit ends reading at the byte limit.
var errLimit = errors.New("byte limit reached")

// logPaths lists the logs of a container, the newest run first.
func logPaths(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing logs: %w", err)
	}
	var runs []int
	for _, entry := range entries {
		if run, err := strconv.Atoi(strings.TrimSuffix(entry.Name(), ".log")); err == nil {
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	slices.Reverse(runs)
	var paths []string
	for _, run := range runs {
		paths = append(paths, filepath.Join(dir, strconv.Itoa(run)+".log"))
	}
	return paths, nil
}

func keepNewestLogs(dir string, keep int) error {
	paths, err := logPaths(dir)
	if err != nil {
		return err
	}
	for _, path := range paths[min(keep, len(paths)):] {
		for _, old := range []string{path, path + ".1"} {
			if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("removing an old log: %w", err)
			}
		}
	}
	return nil
}

// readLog copies a log to out; live is its writer if it still grows.
func readLog(ctx context.Context, path string, live *logFile, o logOptions, out io.Writer) error {
	w := &logWriter{out: out, options: o}
	generation := 0
	if live != nil {
		generation, _, _ = live.state()
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening log: %w", err)
	}
	reader := &reopened{file: file}
	defer reader.close()
	old, err := readLines(path+".1", w)
	if err != nil {
		return err
	}
	lines, err := w.lines(reader.file)
	if err != nil {
		return err
	}
	if err := w.write(tailOf(append(old, lines...), o.tail)); err != nil || !o.follow || live == nil {
		return ignoreLimit(err)
	}
	return ignoreLimit(follow(ctx, path, live, generation, reader, w))
}

// follow copies the lines written after the ones read so far.
func follow(ctx context.Context, path string, live *logFile, generation int, reader *reopened, w *logWriter) error {
	for {
		now, closed, grown := live.state()
		lines, err := w.lines(reader.file)
		if err != nil {
			return err
		}
		if err := w.write(lines); err != nil {
			return err
		}
		switch {
		case now != generation:
			generation = now
			if err := reader.reopen(path); err != nil {
				return err
			}
			continue
		case closed:
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil
		}
	}
}

// reopened is a file replaced at each rotation of the log.
type reopened struct{ file *os.File }

func (r *reopened) reopen(path string) error {
	r.close()
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening log: %w", err)
	}
	r.file = file
	return nil
}

func (r *reopened) close() {
	_ = r.file.Close() // only read from
}

func readLines(path string, w *logWriter) ([][]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	defer file.Close()
	return w.lines(file)
}

func tailOf(lines [][]byte, n int) [][]byte {
	if n < 0 || n >= len(lines) {
		return lines
	}
	return lines[len(lines)-n:]
}

// logWriter applies the options to lines and counts bytes.
type logWriter struct {
	out     io.Writer
	options logOptions
	written int64
	partial []byte
}

// lines reads to the end; it keeps an unfinished line for the next call.
func (w *logWriter) lines(from io.Reader) ([][]byte, error) {
	var lines [][]byte
	reader := bufio.NewReader(from)
	for {
		line, err := reader.ReadBytes('\n')
		w.partial = append(w.partial, line...)
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading log: %w", err)
		}
		if w.wanted(w.partial) {
			lines = append(lines, w.partial)
		}
		w.partial = nil
	}
}

func (w *logWriter) wanted(line []byte) bool {
	if w.options.since.IsZero() {
		return true
	}
	stamp, _, _ := bytes.Cut(line, []byte(" "))
	at, err := time.Parse(time.RFC3339Nano, string(stamp))
	return err != nil || !at.Before(w.options.since)
}

func (w *logWriter) write(lines [][]byte) error {
	var buffer bytes.Buffer
	for _, line := range lines {
		if !w.options.timestamps {
			_, line, _ = bytes.Cut(line, []byte(" "))
		}
		buffer.Write(line)
	}
	data := buffer.Bytes()
	limit := w.options.limit
	if limit > 0 && w.written+int64(len(data)) >= limit {
		data = data[:limit-w.written]
	}
	n, err := w.out.Write(data)
	w.written += int64(n)
	if err != nil {
		return fmt.Errorf("sending log: %w", err)
	}
	if limit > 0 && w.written >= limit {
		return errLimit
	}
	return nil
}

func ignoreLimit(err error) error {
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}
