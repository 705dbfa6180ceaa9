package testkube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/muster-fleet/muster/internal/process"
)

// programs are the programs of this repository built for tests of the package.
var programs struct {
	sync.Mutex
	dir   string
	built map[string]string
}

// Build builds a program of this repository as make does, once for all tests of a package, and
// returns the path of the binary.
//
// The name may end with a version for the program to report, as in muster-agent@v0.2.0. An absolute
// path is the path of an existing binary.
func Build(t testing.TB, name string) string {
	t.Helper()
	if filepath.IsAbs(name) {
		return name
	}
	programs.Lock()
	defer programs.Unlock()
	if path, built := programs.built[name]; built {
		return path
	}
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "muster-programs-")
		if err != nil {
			t.Fatal(err)
		}
		programs.dir, programs.built = dir, map[string]string{}
	}
	program, version, _ := strings.Cut(name, "@")
	path, linking := filepath.Join(programs.dir, version, program), "-s -w"
	if version != "" {
		linking += " -X github.com/muster-fleet/muster/internal/version.Version=" + version
	}
	command := exec.Command("go", "build", "-trimpath", "-ldflags", linking, "-o", path, "github.com/muster-fleet/muster/cmd/"+program)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, output)
	}
	programs.built[name] = path
	return path
}

// Program is a program of this repository in a process of its own.
type Program struct {
	// Env are variables for the next Start, as KEY=VALUE.
	Env []string

	t       testing.TB
	command *exec.Cmd
	exited  <-chan error
	log     string
}

// Run starts a program. At the end of the test it kills the program, and shows its output if the
// test failed.
func Run(t testing.TB, name string, args ...string) *Program {
	t.Helper()
	return RunWith(t, name, nil, args...)
}

// RunWith does the same with variables, as KEY=VALUE.
func RunWith(t testing.TB, name string, env []string, args ...string) *Program {
	t.Helper()
	p := &Program{t: t, Env: env, command: exec.Command(Build(t, name), args...), log: filepath.Join(t.TempDir(), filepath.Base(name)+".log")}
	p.Start()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s printed:\n%s", name, p.Log())
		}
	})
	return p
}

// Start starts the program again after Kill.
func (p *Program) Start() {
	p.t.Helper()
	output, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer output.Close()
	p.command = exec.Command(p.command.Path, p.command.Args[1:]...)
	p.command.Stdout, p.command.Stderr, p.command.Env = output, output, append(os.Environ(), p.Env...)
	p.exited = process.Start(p.command, func() {})
	if p.command.Process == nil {
		p.t.Fatalf("starting %s: %v", p.command.Path, <-p.exited)
	}
}

// Arguments returns the given flags that the program was started with, each followed by its value.
func (p *Program) Arguments(flags ...string) []string {
	var found []string
	for i, argument := range p.command.Args {
		if slices.Contains(flags, argument) {
			found = append(found, argument, p.command.Args[i+1])
		}
	}
	return found
}

// Log returns the output of the program since its first start.
func (p *Program) Log() string {
	p.t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// Children returns the running processes that the program has started.
func (p *Program) Children() []*os.Process {
	p.t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.command.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	var children []*os.Process
	for _, path := range lists {
		text, _ := os.ReadFile(path) // a thread that has ended has none
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				p.t.Fatal(err)
			}
			if child, err := os.FindProcess(pid); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// Signal sends a signal.
func (p *Program) Signal(signal syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		p.t.Fatalf("sending %s to %s: %v", signal, p.command.Path, err)
	}
}

// Ended reports whether the program has ended, by itself or not.
func (p *Program) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// PID returns the ID of the process.
func (p *Program) PID() int { return p.command.Process.Pid }

// Kill kills the program at once, and waits for its end.
func (p *Program) Kill() {
	_ = p.command.Process.Kill() // it may have ended by itself
	<-p.exited
	if ended := p.command.ProcessState; ended != nil {
		recordUsage(filepath.Base(p.command.Path), ended.UserTime()+ended.SystemTime())
	}
}
