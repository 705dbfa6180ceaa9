package hostnode

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func writeLog(t *testing.T, path string, pieces ...string) *logFile {
	t.Helper()
	log, err := newLogFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range pieces {
		if _, err := io.WriteString(log, piece); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

func TestReadLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c", "0.log")
	writeLog(t, path, "one\ntw", "o\n", "three\nunfinished").close()
	all := logOptions{tail: -1}
	for name, test := range map[string]struct {
		options logOptions
		want    string
	}{
		"all lines, the last one ended":      {all, "one\ntwo\nthree\nunfinished\n"},
		"the last two":                       {logOptions{tail: 2}, "three\nunfinished\n"},
		"more than there are":                {logOptions{tail: 9}, "one\ntwo\nthree\nunfinished\n"},
		"none":                               {logOptions{tail: 0}, ""},
		"the first bytes":                    {logOptions{tail: -1, limit: 5}, "one\nt"},
		"nothing since a time in the future": {logOptions{tail: -1, since: time.Now().Add(time.Hour)}, ""},
		"all since a time in the past":       {logOptions{tail: 1, since: time.Now().Add(-time.Hour)}, "unfinished\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := readLog(t.Context(), path, nil, test.options, &out); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.want {
				t.Errorf("read %q, want %q", out.String(), test.want)
			}
		})
	}
	var out bytes.Buffer
	if err := readLog(t.Context(), path, nil, logOptions{tail: 1, timestamps: true}, &out); err != nil {
		t.Fatal(err)
	}
	stamp, rest, _ := strings.Cut(out.String(), " ")
	if _, err := time.Parse(time.RFC3339Nano, stamp); err != nil || rest != "unfinished\n" {
		t.Errorf("read %q, want a time and the line", out.String())
	}
}

func TestFollowingALogOverItsRotationLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c", "0.log")
	log := writeLog(t, path, "first\n")
	reader, writer := io.Pipe()
	result := make(chan error, 1)
	go func() {
		err := readLog(context.Background(), path, log, logOptions{tail: -1, follow: true}, writer)
		result <- err
		_ = writer.CloseWithError(err) // Always nil.
	}()
	read := make(chan string, 1)
	go func() {
		data, _ := io.ReadAll(reader) // The writer's error is looked at below.
		read <- string(data)
	}()
	want := "first\n"
	padding := strings.Repeat("x", 60<<10)
	for i := range 2 * maxLogBytes / len(padding) * 3 / 4 {
		line := fmt.Sprintf("%d %s\n", i, padding)
		want += line
		if _, err := io.WriteString(log, line); err != nil {
			t.Fatal(err)
		}
	}
	log.close()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != want {
		t.Errorf("followed %d bytes, want %d, the same", len(got), len(want))
	}
	if generation, _, _ := log.state(); generation == 0 {
		t.Error("the log was not rotated; the test tests nothing")
	}
}

func TestOnlyThePreviousRunsLogIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	for _, run := range []int{0, 1, 9, 10} {
		writeLog(t, filepath.Join(dir, fmt.Sprintf("%d.log", run)), "x\n").close()
	}
	paths, err := logPaths(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != 2 || filepath.Base(paths[0]) != "10.log" || filepath.Base(paths[1]) != "9.log" {
		t.Errorf("kept %v, want 10.log and 9.log", paths)
	}
}
