package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

type options struct {
	race     string
	changed  bool
	base     string
	parallel int
	// results is the file for the result of each test; none if empty.
	results string
	// noDetector is set if this machine has no C compiler for the race detector.
	noDetector bool
}

// run runs the tests of the options and reports whether a test or a build failed.
func run(ctx context.Context, o options) (failed bool, err error) {
	began := time.Now()
	commit, err := output(ctx, "git", "describe", "--always", "--dirty")
	if err != nil {
		return false, err
	}
	packages, err := list(ctx)
	if err != nil {
		return false, err
	}
	differs, err := differences(ctx, o.base)
	if err != nil {
		return false, err
	}
	compiler, err := output(ctx, "go", "env", "CC")
	if err != nil {
		return false, err
	}
	_, err = exec.LookPath(strings.TrimSpace(compiler))
	o.noDetector = err != nil
	p, err := newPlan(packages, differs, o)
	if err != nil {
		return false, err
	}
	usage, err := os.MkdirTemp("", "muster-usage-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(usage) }() // a temporary directory
	fmt.Println(p)
	r := &runner{usage: usage, out: os.Stdout, used: map[string]float64{}, waited: map[string]float64{}}
	r.runAll(ctx, p.first, 1)
	r.runAll(ctx, p.planes, o.parallel)
	r.report(os.Stdout, childrenUsage(), time.Since(began))
	if o.results != "" {
		err = r.write(o.results, strings.TrimSpace(commit))
	}
	return r.failed(), errors.Join(err, ctx.Err())
}
