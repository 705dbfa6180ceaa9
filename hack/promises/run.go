package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

const (
	passed  = "passed"
	skipped = "skipped"
	failed  = "failed"
)

// outcomes are the outcomes by the actions of go test.
var outcomes = map[string]string{"pass": passed, "skip": skipped, "fail": failed}

// run runs the tests of all promises, package by package, and stores their results.
func (b *book) run(ctx context.Context) error {
	commit, err := describe(ctx)
	if err != nil {
		return err
	}
	byPackage := b.byPackage()
	var errs []error
	for _, pkg := range slices.Sorted(maps.Keys(byPackage)) {
		tests := byPackage[pkg]
		fmt.Printf("%s: %s\n", pkg, strings.Join(tests, ", "))
		errs = append(errs, b.runPackage(ctx, pkg, tests, commit))
	}
	return errors.Join(errs...)
}

// byPackage returns the tests of all promises by their package.
func (b *book) byPackage() map[string][]string {
	tests := map[string][]string{}
	for _, area := range b.areas {
		for _, p := range area.Promises {
			for _, test := range p.Tests {
				tests[b.packages[test]] = append(tests[b.packages[test]], test)
			}
		}
	}
	return tests
}

func (b *book) runPackage(ctx context.Context, pkg string, tests []string, commit string) error {
	//nolint:gosec // the arguments are names in this repository
	command := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-timeout=40m", "-run", "^("+strings.Join(tests, "|")+")$", pkg)
	command.Stderr = os.Stderr
	output, runErr := command.Output()
	var errs []error
	for line := range strings.Lines(string(output)) {
		var event struct {
			Action, Test string
			Elapsed      float64
		}
		if json.Unmarshal([]byte(line), &event) != nil || !slices.Contains(tests, event.Test) || outcomes[event.Action] == "" {
			continue
		}
		r := newResult(time.Now(), commit, event.Elapsed, event.Action)
		b.results[event.Test] = r
		fmt.Printf("  %s %s in %.1f s\n", event.Test, r.Outcome, r.Seconds)
		if r.Outcome == failed {
			errs = append(errs, fmt.Errorf("%s failed: go test -run '^%s$' %s shows why", event.Test, event.Test, pkg))
		}
	}
	if runErr != nil && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("running the tests of %s: %w", pkg, runErr))
	}
	return errors.Join(errs...)
}

// describe returns the commit of the working tree.
func describe(ctx context.Context) (string, error) {
	commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "", fmt.Errorf("reading the commit: %w", err)
	}
	return strings.TrimSpace(string(commit)), nil
}

func newResult(at time.Time, commit string, seconds float64, action string) result {
	return result{at.UTC().Format(time.DateOnly), commit, math.Round(seconds*10) / 10, outcomes[action]}
}

// take stores the results of a run of all tests, with its commit. A test of a promise without a
// result there keeps its last one.
func (b *book) take(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var results struct {
		Commit string
		Tests  []struct {
			Package, Test, Outcome string
			Seconds                float64
		}
	}
	if err := json.Unmarshal(text, &results); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	shows := b.byPackage()
	for _, one := range results.Tests {
		if slices.Contains(shows["./"+one.Package], one.Test) {
			b.results[one.Test] = newResult(info.ModTime(), results.Commit, one.Seconds, one.Outcome)
		}
	}
	return nil
}
