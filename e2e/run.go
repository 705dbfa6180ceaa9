package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

type options struct {
	source, only, except, table, from string
	keep                              bool
}

// scenario is a single check. To add one, write a function and put it into the list.
type scenario struct {
	// name states the checked fact.
	name string
	// vital marks a scenario that others build upon: if it fails, they are not tried.
	vital bool
	// run returns a figure for the results, if there is one.
	run func(ctx context.Context, e *env) (string, error)
}

// scenarioTimeout bounds each scenario; the slowest builds the images of an earlier commit.
const scenarioTimeout = 8 * time.Minute

// timeouts are the bounds of longer scenarios, by name.
var timeouts = map[string]time.Duration{weekWithout: weekTimeout}

func run(ctx context.Context, o options) (err error) {
	chosen, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("reading -run: %w", err)
	}
	leftOut, err := regexp.Compile(o.except)
	if err != nil {
		return fmt.Errorf("reading -skip: %w", err)
	}
	if o.except == "" {
		leftOut = nil
	}
	e, err := newEnv(o.source)
	if err != nil {
		return err
	}
	e.from = o.from
	if output, err := e.command(ctx, nil, e.bin("localkube"), "check").CombinedOutput(); err != nil {
		return fmt.Errorf("this machine cannot run the end-to-end test: %s", strings.TrimSpace(strings.TrimPrefix(string(output), "error: ")))
	}
	if err := e.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.cleanUp()) }()
	results := e.runAll(ctx, scenarios(), chosen, leftOut)
	fmt.Printf("\n%s\n", table(results))
	if o.table != "" {
		if err := os.WriteFile(o.table, []byte(table(results)), 0o644); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	failed := 0
	for _, r := range results {
		if r.err != nil {
			failed++
		}
	}
	if failed == 0 {
		return ctx.Err()
	}
	if o.keep && ctx.Err() == nil {
		fmt.Printf("The clusters go on running until Ctrl-C: source %s\n", filepath.Join(e.work, "env"))
		<-ctx.Done()
	}
	return fmt.Errorf("%d of %d scenarios failed", failed, len(results))
}

// runAll runs the scenarios with names that match chosen. It reports a scenario that matches
// leftOut, which may be nil, without running it.
func (e *env) runAll(ctx context.Context, scenarios []scenario, chosen, leftOut *regexp.Regexp) []result {
	var results []result
	for _, s := range scenarios {
		if !s.vital && !chosen.MatchString(s.name) {
			continue
		}
		r := result{name: s.name, note: "left out by -skip", skipped: true}
		if s.vital || leftOut == nil || !leftOut.MatchString(s.name) {
			r = e.runOne(ctx, s)
		}
		results = append(results, r)
		if r.err != nil {
			fmt.Printf("FAIL  %-*s %6.1fs\n%s\n", nameWidth, s.name, r.took.Seconds(), indent(r.err.Error()))
		} else if r.skipped {
			fmt.Printf("skip  %-*s %6.1fs  %s\n", nameWidth, s.name, r.took.Seconds(), r.note)
		} else {
			fmt.Printf("ok    %-*s %6.1fs  %s\n", nameWidth, s.name, r.took.Seconds(), r.note)
		}
		if ctx.Err() != nil || (s.vital && r.err != nil) {
			break
		}
	}
	return results
}

func (e *env) runOne(ctx context.Context, s scenario) result {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(timeouts[s.name], scenarioTimeout))
	defer cancel()
	began := time.Now()
	note, err := s.run(ctx, e)
	var why skipped
	if errors.As(err, &why) {
		return result{name: s.name, took: time.Since(began), note: why.Error(), skipped: true}
	}
	if err != nil {
		// The state of the clusters is lost with them.
		err = fmt.Errorf("%w\n%s", err, e.diagnosis())
	}
	return result{name: s.name, took: time.Since(began), note: note, err: err}
}

type result struct {
	name, note string
	took       time.Duration
	err        error
	// skipped: the scenario could not be tried here; the note has the reason.
	skipped bool
}

// skipped is the error of a scenario that cannot be tried here.
type skipped string

func (s skipped) Error() string { return string(s) }

const nameWidth = 78

// table returns the results of a run for docs/e2e.md.
func table(results []result) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| check | result | seconds | figures |\n| --- | --- | ---: | --- |\n")
	var total time.Duration
	for _, r := range results {
		verdict := "ok"
		switch {
		case r.err != nil:
			verdict = "**failed**"
		case r.skipped:
			verdict = "not run"
		}
		total += r.took
		fmt.Fprintf(&out, "| %s | %s | %.1f | %s |\n", r.name, verdict, r.took.Seconds(), r.note)
	}
	fmt.Fprintf(&out, "| all | | %.0f | |\n", total.Seconds())
	return out.String()
}

func indent(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
}

// eventually retries until the check passes or the context ends.
func eventually(ctx context.Context, what string, check func() error) error {
	const interval = 250 * time.Millisecond
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
	}
}

// seconds formats a figure.
func seconds(since time.Time) string { return fmt.Sprintf("%.1f s", time.Since(since).Seconds()) }

func (e *env) bin(name string) string { return filepath.Join(e.root, "bin", name) }

// isFile returns an error unless a file from `make e2e` exists.
func isFile(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w; build it: make build images", err)
	}
	return nil
}
