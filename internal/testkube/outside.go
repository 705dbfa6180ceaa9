package testkube

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

// Outside runs a function with control planes in a program other than a test, and stops them. It
// prints failures, and returns the exit code.
func Outside(name string, do func(testing.TB)) int {
	defer stopAll()
	t, done := &outside{name: name}, make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, cleanup := range slices.Backward(t.cleanups) {
				cleanup()
			}
		}()
		do(t)
	}()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	select {
	case <-done:
	case <-interrupted:
		t.failed = true
	}
	if t.failed {
		return 1
	}
	return 0
}

// outside is a testing.TB without a test. It has only the methods used by this package and its
// callers.
type outside struct {
	testing.TB
	name     string
	cleanups []func()
	failed   bool
}

func (t *outside) Helper()                           {}
func (t *outside) Name() string                      { return t.name }
func (t *outside) Failed() bool                      { return t.failed }
func (t *outside) Cleanup(f func())                  { t.cleanups = append(t.cleanups, f) }
func (t *outside) Logf(format string, args ...any)   { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (t *outside) Errorf(format string, args ...any) { t.Logf(format, args...); t.failed = true }
func (t *outside) Fatalf(format string, args ...any) { t.Errorf(format, args...); runtime.Goexit() }
func (t *outside) Fatal(args ...any)                 { t.Fatalf("%s", fmt.Sprint(args...)) }

func (t *outside) TempDir() string {
	dir, err := os.MkdirTemp("", "muster-outside-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a temporary directory
	return dir
}
