// Package testkube starts real Kubernetes control planes for tests, with localkube.
//
// Its invariant: a cluster lives as long as its test binary and leaves nothing behind. A test
// without its cluster fails: only go test -short skips the tests that need one.
package testkube

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/process"
)

// startTimeout ends the wait for a control plane that hangs. A start takes 20 s of processor time,
// which is minutes beside 30 busy processes on two processors.
const startTimeout = 10 * time.Minute

// garbage is the growth of the heap in percent before a test, or a program that it starts, collects
// the garbage. There is more memory than processor time. Benchmarks measure programs with their own
// setting.
const garbage = 400

// thrift are further variables of control planes in tests. Each control plane uses one processor,
// because there are many on few processors, and none may spin while others work.
var thrift = []string{"GOMAXPROCS=1", "GOMEMLIMIT=1500MiB"}

// Cluster is a running control plane.
type Cluster struct {
	// Config acts as the administrator, without a client-side rate limit.
	Config *rest.Config
	// Dir is the directory of localkube, with the logs, and the audit.log of a benchmark.
	Dir string

	*made
}

// made are the objects that tests of the package share on a control plane.
type made struct {
	client    func() (client.Client, error)
	crds, hub sync.Once
}

// Name returns the name from Start.
func (c Cluster) Name() string { return filepath.Base(c.Dir) }

var (
	mu       sync.Mutex
	clusters = map[string]*entry{}
)

type entry struct {
	start   sync.Once
	cluster Cluster
	// halt stops the control plane, resume starts it again on its data, stop stops it and removes its
	// data.
	halt, stop func()
	resume     func() error
	// turn is held by the test that uses the control plane alone; waiting counts the tests waiting for
	// their turn.
	turn    sync.Mutex
	waiting atomic.Int32
	// halted is set between two turns.
	halted bool
	// thrifty is set for a test, but not for a benchmark.
	thrifty bool
	err     error
}

// entryOf returns the entry of a name; it need not be started.
func entryOf(name string) *entry {
	mu.Lock()
	defer mu.Unlock()
	e, known := clusters[name]
	if !known {
		e = &entry{halt: func() {}, stop: func() {}}
		clusters[name] = e
	}
	return e
}

// Main runs the tests of a package, then stops their programs: first the given ones of the package
// itself, then the control planes. Call it from TestMain: os.Exit(testkube.Main(m)).
func Main(m *testing.M, stop ...func()) int {
	defer stopAll()
	flag.Parse()
	_ = os.Unsetenv("KUBECONFIG") // no test reaches the clusters of its user
	if flag.Lookup("test.bench").Value.String() == "" {
		debug.SetGCPercent(garbage)
		_ = os.Setenv("GOGC", strconv.Itoa(garbage)) // no name and no value is invalid here
	}
	code := m.Run()
	for _, running := range stop {
		running()
	}
	recordOwnUsage()
	return code
}

// stopAll stops all control planes and removes the built programs.
func stopAll() {
	mu.Lock()
	defer mu.Unlock()
	for _, e := range clusters {
		e.stop()
	}
	_ = os.RemoveAll(programs.dir) // a temporary directory
}

// Discard stops the control plane of a name, and removes all its data. A later use of the name
// starts a new one.
func Discard(name string) {
	e := entryOf(name)
	e.stop()
	mu.Lock()
	defer mu.Unlock()
	delete(clusters, name)
}

// Start returns the control plane of a name, shared by all tests of the package. It has no nodes.
// flags are further flags of localkube up.
func Start(t testing.TB, name string, flags ...string) Cluster {
	t.Helper()
	if testing.Testing() && testing.Short() {
		t.Skip("it needs a control plane")
	}
	e := entryOf(name)
	if _, measures := t.(*testing.B); measures {
		flags = append(flags, "--audit")
	}
	_, tests := t.(*testing.T)
	e.start.Do(func() { e.thrifty = tests; e.begin(name, flags) })
	if e.err != nil {
		t.Fatalf("starting control plane %s: %v", name, e.err)
	}
	return e.cluster
}

func (e *entry) begin(name string, flags []string) {
	binary, err := localkube()
	if err != nil {
		e.err = err
		return
	}
	dir, err := os.MkdirTemp("", "muster-test-")
	if err != nil {
		e.err = err
		return
	}
	e.resume = func() error { return e.up(binary, name, dir, flags) }
	e.stop = func() {
		e.halt()
		_ = os.RemoveAll(dir) // a temporary directory
	}
	if e.err = e.resume(); e.err != nil {
		e.stop()
		return
	}
	e.cluster.Dir = filepath.Join(dir, name)
	e.err = e.connect()
}

// connect makes the clients of a started control plane.
func (e *entry) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(e.cluster.Dir, "kubeconfig"))
	if err != nil {
		return err
	}
	config.QPS = -1
	e.cluster.Config, e.cluster.made = config, &made{client: sync.OnceValues(func() (client.Client, error) {
		return client.New(config, client.Options{Scheme: scheme()})
	})}
	return record(config)
}

// up starts the control plane and waits until it is ready.
func (e *entry) up(binary, name, dir string, flags []string) error {
	ready := filepath.Join(dir, "ready")
	if err := os.Remove(ready); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var output strings.Builder
	arguments := []string{"up", name, "--dir", dir, "--node=false", "--ready-file", ready}
	if usage := os.Getenv(UsageVariable); usage != "" {
		arguments = append(arguments, "--usage-file", usage)
	}
	command := exec.Command(binary, append(arguments, flags...)...)
	command.Stdout, command.Stderr = &output, &output
	if e.thrifty {
		command.Env = append(slices.Clone(thrift), os.Environ()...)
	}
	exited := process.Start(command, func() {})
	e.halt = func() {
		if command.Process != nil {
			_ = command.Process.Signal(syscall.SIGTERM) // it may have ended by itself
			<-exited
		}
	}
	if err := awaitFile(ready, exited); err != nil {
		e.halt() // it writes until then
		return fmt.Errorf("%w:\n%s", err, output.String())
	}
	return nil
}

// Localkube returns the path of the program. Called by the name kubectl, it is also kubectl.
func Localkube(t testing.TB) string {
	t.Helper()
	path, err := localkube()
	if err != nil {
		t.Fatal(err)
	}
	return path
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

// awaitFile waits until the file exists, or the process writing it has ended.
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
