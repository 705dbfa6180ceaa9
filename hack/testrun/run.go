package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// endTime is the time for interrupted tests to stop their control planes.
const endTime = time.Minute

// runner runs jobs and collects the results of their tests.
type runner struct {
	// usage is the directory of the files with the processor time of control planes and programs, one
	// file for each job.
	usage string

	mu      sync.Mutex
	out     io.Writer
	results []result
	// used is the processor time of each part, in seconds; ended are the jobs, with all their
	// processor time.
	used  map[string]float64
	ended []result
	// waited is the time that a test has waited for its turn on a control plane, in seconds.
	waited map[string]float64
	races  races
	broken bool
}

// result is the end of a test.
type result struct {
	name, outcome string
	seconds       float64
	// said is an excerpt of a failed test's output.
	said string
}

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action, Package, ImportPath, Test, Output, Key, Value string
	Elapsed                                               float64
}

// runAll runs jobs in their order, some side by side.
func (r *runner) runAll(ctx context.Context, jobs []job, parallel int) {
	var running sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for _, j := range jobs {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			if ctx.Err() == nil {
				r.run(ctx, j)
			}
		})
	}
	running.Wait()
}

// command returns the arguments and variables for go. Without the race detector, tests are compiled
// like the programs under test, so that common packages are compiled once. The detector needs cgo.
//
// The tests are linked without tables for debuggers. The linter vets the code, with all analyzers.
func (j job) command() (args, environment []string) {
	args = []string{"test", "-json", "-ldflags=-s", "-vet=off", "-trimpath"}
	cgo := "0"
	if slices.Contains(j.flags, "-race") {
		cgo = "1"
	}
	return append(append(args, j.flags...), j.packages...), []string{"CGO_ENABLED=" + cgo}
}

func (r *runner) run(ctx context.Context, j job) {
	args, environment := j.command()
	usage := filepath.Join(r.usage, strings.NewReplacer("/", "-", " ", "-").Replace(j.name))
	command := exec.CommandContext(ctx, "go", args...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go test passes no signal on, so the signal goes to the whole group
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = endTime
	command.Env = append(append(os.Environ(), environment...), usageVariable+"="+usage)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err == nil {
		r.read(output)
		err = command.Wait()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if command.ProcessState != nil {
		used := command.ProcessState.UserTime() + command.ProcessState.SystemTime()
		r.ended = append(r.ended, result{name: j.name, seconds: used.Seconds()})
		err = errors.Join(err, addUsage(r.used, usage))
	}
	if err != nil {
		r.broken = true
		fmt.Fprintf(r.out, "%s: go %s: %v\n", j.name, strings.Join(args, " "), err)
	}
}

// read prints the events for a user: the line that ends a package, the output of failed tests, and
// errors of builds.
func (r *runner) read(output io.Reader) {
	outputs := map[string]*strings.Builder{}
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if line != "" && json.Unmarshal([]byte(line), &e) == nil {
			r.take(e, outputs)
		} else if line != "" {
			r.print(line)
		}
		if err != nil {
			return
		}
	}
}

// take handles one event. It keeps the output of a test until the test has ended; a subtest is part
// of its test.
func (r *runner) take(e event, outputs map[string]*strings.Builder) {
	test, subtest, _ := strings.Cut(e.Test, "/")
	key := e.Package + " " + test
	switch e.Action {
	case "build-output":
		r.print(e.Output)
	case "output":
		if outputs[key] == nil {
			outputs[key] = &strings.Builder{}
		}
		outputs[key].WriteString(e.Output)
		r.mu.Lock()
		r.races.take(strings.TrimPrefix(e.Package, module+"/"), e.Output)
		r.mu.Unlock()
	case "attr":
		if seconds, err := strconv.ParseFloat(e.Value, 64); err == nil && e.Key == waitedAttribute {
			r.mu.Lock()
			r.waited[key] += seconds
			r.mu.Unlock()
		}
	case "pass", "fail", "skip":
		r.end(e, test, subtest, outputs)
	}
}

func (r *runner) end(e event, test, subtest string, outputs map[string]*strings.Builder) {
	key := e.Package + " " + test
	switch {
	case subtest != "" || outputs[key] == nil:
	case test != "":
		one := result{name: strings.TrimPrefix(e.Package, module+"/") + " " + test, outcome: e.Action}
		if e.Action == "fail" {
			r.print(outputs[key].String())
			one.said = excerpt(outputs[key].String())
		}
		delete(outputs, key)
		r.mu.Lock()
		one.seconds = e.Elapsed - r.waited[key]
		r.results = append(r.results, one)
		r.mu.Unlock()
	default:
		r.endPackage(e, outputs)
	}
}

// excerptLines bounds the excerpt of a failed test's output.
const excerptLines = 8

// codeLine is a line of a test's output that names a line of code, as testing.T prints it.
var codeLine = regexp.MustCompile(`(?m)^ +(\w+\.go:\d+: .+)$`)

// excerpt returns those lines of a failed test's output that name a line of code: the first and the
// last few. The lines before the output of a program are no failure.
func excerpt(output string) string {
	var all []string
	for _, line := range codeLine.FindAllStringSubmatch(output, -1) {
		if !strings.HasSuffix(line[1], " printed:") {
			all = append(all, line[1])
		}
	}
	if len(all) > excerptLines {
		all = slices.Delete(all, 1, len(all)-excerptLines+1)
	}
	return strings.Join(all, "\n")
}

// endPackage prints the closing lines of a package, and the output of tests that did not end.
func (r *runner) endPackage(e event, outputs map[string]*strings.Builder) {
	r.mu.Lock()
	r.races.end(strings.TrimPrefix(e.Package, module+"/"))
	r.mu.Unlock()
	last := outputs[e.Package+" "].String()
	if e.Action == "fail" {
		for key, unfinished := range outputs {
			if path, test, _ := strings.Cut(key, " "); path == e.Package && test != "" {
				r.print(unfinished.String())
			}
		}
		r.print(last)
	} else {
		lines := strings.Split(strings.TrimSpace(last), "\n")
		r.print(lines[len(lines)-1] + "\n")
	}
	delete(outputs, e.Package+" ")
}

func (r *runner) print(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprint(r.out, text)
}

// failed reports whether a test failed, or go test itself.
func (r *runner) failed() bool {
	for _, one := range r.results {
		if one.outcome == "fail" {
			return true
		}
	}
	return r.broken
}
