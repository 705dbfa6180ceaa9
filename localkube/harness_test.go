package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// deadline bounds each wait; a healthy machine needs seconds.
const deadline = 2 * time.Minute

var buildOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "localkube-test")
	if err != nil {
		return "", err
	}
	targets := map[string]string{"testprogram": "./internal/testprogram"}
	if os.Getenv("LOCALKUBE_BIN") == "" {
		targets["localkube"] = "."
	}
	flags, err := os.ReadFile("ldflags")
	if err != nil {
		return "", err
	}
	for name, target := range targets {
		build := exec.Command("go", "build", "-trimpath", "-ldflags", strings.TrimSpace(string(flags)), "-o", filepath.Join(dir, name), target)
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // An image has no libraries.
		if output, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building %s: %w\n%s", target, err, output)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := buildOnce(); err == nil {
		_ = os.RemoveAll(dir) // Below the temporary directory anyway.
	}
	os.Exit(code)
}

// machine is a root directory with clusters in it.
type machine struct {
	t            *testing.T
	bin, program string
	root         string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, bin: filepath.Join(dir, "localkube"), program: filepath.Join(dir, "testprogram"), root: t.TempDir()}
	if given := os.Getenv("LOCALKUBE_BIN"); given != "" {
		if m.bin, err = filepath.Abs(given); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// run runs localkube to its end.
func (m *machine) run(args ...string) (string, error) {
	command := exec.Command(m.bin, args...)
	command.Env = append(os.Environ(), "LOCALKUBE_DIR="+m.root)
	output, err := command.CombinedOutput()
	return string(output), err
}

func (m *machine) mustRun(args ...string) string {
	m.t.Helper()
	output, err := m.run(args...)
	if err != nil {
		m.t.Fatalf("localkube %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

// up is one running `localkube up`.
type up struct {
	m      *machine
	name   string
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan struct{}
}

// start runs `localkube up` and waits until the cluster is ready.
func (m *machine) start(name string, args ...string) *up {
	m.t.Helper()
	u := &up{m: m, name: name, ended: make(chan struct{})}
	ready := filepath.Join(m.t.TempDir(), "ready")
	args = append([]string{"up", name, "--dir", m.root, "--image", "testprogram=" + m.program, "--ready-file", ready}, args...)
	u.cmd = exec.Command(m.bin, args...)
	u.cmd.Stdout, u.cmd.Stderr = &u.output, &u.output
	if err := u.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	go func() {
		defer close(u.ended)
		_ = u.cmd.Wait() // The tests look at ProcessState.
	}()
	m.t.Cleanup(u.kill)
	m.await("cluster "+name+" to be ready", func() error {
		select {
		case <-u.ended:
			m.t.Fatalf("localkube up %s ended early:\n%s", name, u.output.String())
		default:
		}
		_, err := os.Stat(ready)
		return err
	})
	return u
}

// kill is the hard end: SIGKILL.
func (u *up) kill() {
	_ = u.cmd.Process.Kill() // It may have ended.
	<-u.ended
}

// kubectl runs the binary as kubectl on the cluster.
func (u *up) kubectl(input string, args ...string) (string, error) {
	command := exec.Command(u.m.bin, append([]string{"kubectl"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(u.m.root, u.name, "kubeconfig"))
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	return string(output), err
}

func (u *up) mustKubectl(input string, args ...string) string {
	u.m.t.Helper()
	output, err := u.kubectl(input, args...)
	if err != nil {
		u.m.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

// awaitOutput waits until a kubectl command prints the wanted text.
func (u *up) awaitOutput(want string, args ...string) string {
	u.m.t.Helper()
	var output string
	u.m.await(fmt.Sprintf("%q from kubectl %s", want, strings.Join(args, " ")), func() error {
		var err error
		output, err = u.kubectl("", args...)
		if err == nil && !strings.Contains(output, want) {
			err = errors.New("not yet")
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		return nil
	})
	return output
}

func (m *machine) await(what string, check func() error) {
	m.t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(20 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("waiting for %s: %v", what, err)
		}
	}
}

// processes lists all processes of the cluster, by the mark in the environment. Ended processes
// that are not reaped yet do not count.
func (u *up) processes() map[string]string {
	u.m.t.Helper()
	state := u.state()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		u.m.t.Fatal(err)
	}
	found := map[string]string{}
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, []byte("LOCALKUBE_ID="+state.ID)) {
			continue // Another user's, ended, or not of this cluster.
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err == nil {
			found[filepath.Base(filepath.Dir(path))] = strings.ReplaceAll(string(line), "\x00", " ")
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			u.m.t.Fatal(err)
		}
	}
	return found
}

// state is what the cluster keeps about itself.
func (u *up) state() (state struct{ ID string }) {
	u.m.t.Helper()
	data, err := os.ReadFile(filepath.Join(u.m.root, u.name, "state.json"))
	if err != nil {
		u.m.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &state); err != nil {
		u.m.t.Fatal(err)
	}
	return state
}

func (u *up) url() string {
	u.m.t.Helper()
	return u.mustKubectl("", "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
}

func kill(pid string) error {
	number, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	return syscall.Kill(number, syscall.SIGKILL)
}
