package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// shown is the number of slowest tests in a report.
const shown = 10

// explained is the number of failed tests with an excerpt of their output in a report.
const explained = 20

// parts are the parts of processor time, in the order of a report, with the processes of each.
var parts = []struct {
	name      string
	processes []string
}{
	{"API servers", []string{"kube-apiserver"}},
	{"etcd", []string{"etcd"}},
	{"controller managers", []string{"kube-controller-manager", "kube-scheduler"}},
	{"tests", []string{testProcess}},
	{"hubs", []string{"muster-hub"}},
	{"agents", []string{"muster-agent", "muster-deployer"}},
}

// testProcess is the prefix of the usage of a test binary.
const testProcess = "test:"

// usageVariable is testkube.UsageVariable, waitedAttribute testkube.WaitedAttribute.
const (
	usageVariable   = "MUSTER_TEST_USAGE"
	waitedAttribute = "waited"
)

// write writes the commit and the result of each test to a file, as JSON.
func (r *runner) write(path, commit string) error {
	type ended struct {
		Package, Test, Outcome string
		Seconds                float64
	}
	all := []ended{}
	for _, one := range r.results {
		pkg, test, _ := strings.Cut(one.name, " ")
		all = append(all, ended{pkg, test, one.outcome, one.seconds})
	}
	encoded, err := json.MarshalIndent(map[string]any{"Commit": commit, "Tests": all}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(encoded, '\n'), 0o644)
}

// addUsage adds the processor time of each part from a file of package testkube. A job without
// control planes has no such file.
func addUsage(used map[string]float64, path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		process, seconds, _ := strings.Cut(strings.TrimSpace(line), " ")
		value, err := strconv.ParseFloat(seconds, 64)
		if err != nil {
			return fmt.Errorf("reading the processor time %q: %w", line, err)
		}
		used[partOf(process)] += value
	}
	return nil
}

func partOf(process string) string {
	if strings.HasPrefix(process, testProcess) {
		process = testProcess
	}
	for _, part := range parts {
		if slices.Contains(part.processes, process) {
			return part.name
		}
	}
	return ""
}

// childrenUsage returns the processor time of all ended processes since the start, including their
// children.
func childrenUsage() time.Duration {
	var all syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &all); err != nil {
		return 0
	}
	return time.Duration(all.Utime.Nano() + all.Stime.Nano())
}

// report prints the slowest tests, the use of processor time, and the number of passed tests.
func (r *runner) report(out io.Writer, total, took time.Duration) {
	fmt.Fprintln(out, "\nslowest tests, in seconds:")
	tests := unique(r.results)
	printTop(out, tests)
	fmt.Fprintln(out, "\nprocessor time by package, in seconds:")
	printTop(out, r.ended)
	fmt.Fprintln(out, "\nprocessor time by part, in seconds:")
	rest := total.Seconds()
	for _, part := range parts {
		fmt.Fprintf(out, "%8.0f  %s\n", r.used[part.name], part.name)
		rest -= r.used[part.name]
	}
	fmt.Fprintf(out, "%8.0f  compilers and the rest\n%8.0f  in all, within %.0f seconds\n\n", max(0, rest), total.Seconds(), took.Seconds())
	count := map[string]int{}
	for _, one := range tests {
		count[one.outcome]++
	}
	printFailed(out, tests)
	r.races.print(out)
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", count["pass"], count["fail"], count["skip"])
}

// printFailed names the failed tests at the end of the run, because a log may be kept only in part.
// It only counts the tests that a data race failed.
func printFailed(out io.Writer, tests []result) {
	failed := slices.DeleteFunc(slices.Clone(tests), func(one result) bool { return one.outcome != "fail" })
	failures := len(failed)
	failed = slices.DeleteFunc(failed, result.raced)
	slices.SortFunc(failed, func(a, b result) int { return cmp.Compare(a.name, b.name) })
	for i, one := range failed {
		fmt.Fprintf(out, "failed: %s\n", one.name)
		if i >= explained {
			continue
		}
		for line := range strings.Lines(one.said) {
			fmt.Fprintf(out, "    %.200s\n", strings.TrimSpace(line))
		}
	}
	if raced := failures - len(failed); raced > 0 {
		fmt.Fprintf(out, "failed: %d tests that ran during a data race\n", raced)
	}
}

func printTop(out io.Writer, all []result) {
	slices.SortFunc(all, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	for _, one := range all[:min(shown, len(all))] {
		fmt.Fprintf(out, "%8.1f  %s\n", one.seconds, one.name)
	}
}

// unique returns one result for each test. A test skipped for want of a control plane counts as run
// if it ran later.
func unique(results []result) []result {
	rank := map[string]int{"skip": 1, "pass": 2, "fail": 3}
	merged := map[string]result{}
	for _, one := range results {
		before := merged[one.name]
		if rank[before.outcome] > rank[one.outcome] {
			one.outcome = before.outcome
		}
		one.seconds = max(one.seconds, before.seconds)
		merged[one.name] = one
	}
	return slices.Collect(maps.Values(merged))
}
