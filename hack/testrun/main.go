// Command testrun runs the tests of this module in as little time as the machine allows, and
// reports the use of that time.
//
// Tests without a control plane run first, all of them under the race detector. Then the packages
// with control planes run side by side, the longest first. A third of them runs under the race
// detector, chosen by the commit. So does each package with a difference from the base; -race=all
// chooses all.
//
// Its invariant: no test is left out, except with -changed. It exits with 1 if a test or a build
// failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	var o options
	flag.StringVar(&o.race, "race", raceAuto, "packages with control planes that run under the race detector: auto, all or none")
	flag.BoolVar(&o.changed, "changed", false, "run only packages that differ from the base, and only changed tests with control planes")
	flag.StringVar(&o.base, "base", "", "revision to compare with; default: where the branch left origin/main, or the commit before")
	flag.IntVar(&o.parallel, "p", runtime.NumCPU()+1, "packages with control planes that run side by side")
	flag.StringVar(&o.results, "results", "", "file for the result of each test; none if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	failed, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}
