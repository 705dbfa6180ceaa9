// Package testkube starts real Kubernetes control planes for tests, with localkube.
//
// Its invariant: a cluster lives as long as the test binary that asked for it and leaves nothing behind; a test that cannot have one
// fails, it is never skipped.
package testkube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// startTimeout is how long a control plane may take on a busy machine.
const startTimeout = 2 * time.Minute

// Cluster is a running control plane.
type Cluster struct {
	// Config acts as its administrator, without a client-side rate limit.
	Config *rest.Config
	// Dir is where localkube keeps it; audit.log and logs are there.
	Dir string
}

var (
	mu       sync.Mutex
	clusters = map[string]*entry{}
)

type entry struct {
	cluster Cluster
	// dir is where localkube keeps all of it, halt ends its processes, stop removes it, too.
	dir        string
	halt, stop func()
	err        error
}

// Main runs the tests of a package and stops what they started: first what the package itself has running, then the control planes. Call it
// from TestMain: os.Exit(testkube.Main(m)).
func Main(m *testing.M, stop ...func()) int {
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range clusters {
			e.stop()
		}
		_ = os.RemoveAll(programs.dir) // a temporary directory
	}()
	code := m.Run()
	for _, running := range stop {
		running()
	}
	return code
}

// Start returns the control plane of that name, which all tests of the package share. It has no nodes.
func Start(t testing.TB, name string) Cluster {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	e, known := clusters[name]
	if !known {
		e = start(name)
		clusters[name] = e
	}
	if e.err != nil {
		t.Fatalf("starting control plane %s: %v", name, e.err)
	}
	return e.cluster
}

// Restart stops the control plane of that name, calls between with the directory of its etcd, and starts it again at the same address.
func Restart(t testing.TB, name string, between func(etcd string)) {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	e := clusters[name]
	e.halt()
	between(filepath.Join(e.cluster.Dir, "etcd"))
	if e.up(name); e.err != nil {
		t.Fatalf("starting control plane %s again: %v", name, e.err)
	}
}

func start(name string) *entry {
	e := &entry{halt: func() {}, stop: func() {}}
	if e.dir, e.err = os.MkdirTemp("", "muster-test-"); e.err != nil {
		return e
	}
	e.stop = func() {
		e.halt()
		_ = os.RemoveAll(e.dir) // a temporary directory
	}
	if e.up(name); e.err != nil {
		e.stop()
	}
	return e
}

// up starts localkube.
func (e *entry) up(name string) {
	binary, err := localkube()
	if err != nil {
		e.err = err
		return
	}
	ready := filepath.Join(e.dir, "ready")
	var output strings.Builder
	command := exec.Command(binary, "up", name, "--dir", e.dir, "--node=false", "--audit", "--ready-file", ready)
	command.Stdout, command.Stderr = &output, &output
	exited := runUntilParentDies(command)
	e.halt = func() {
		if command.Process != nil {
			_ = command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
			<-exited
		}
	}
	if err := awaitFile(ready, exited); err != nil {
		e.halt()
		e.err = fmt.Errorf("%w:\n%s", err, output.String())
		return
	}
	e.cluster.Dir = filepath.Join(e.dir, name)
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(e.cluster.Dir, "kubeconfig"))
	if err != nil {
		e.err = err
		return
	}
	config.QPS = -1
	e.cluster.Config = config
}

// localkube finds the binary: LOCALKUBE_BIN, else bin/localkube of the repository.
func localkube() (string, error) {
	if path := os.Getenv("LOCALKUBE_BIN"); path != "" {
		return path, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "bin", "localkube")
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no bin/localkube: run make bin/localkube first, or set LOCALKUBE_BIN")
}

// awaitFile waits until the file exists, or the process that should write it has ended.
func awaitFile(path string, exited <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case err := <-exited:
			return fmt.Errorf("localkube ended: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("localkube is not ready after %s", startTimeout)
		case <-tick.C:
		}
	}
}
