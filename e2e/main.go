// Command e2e installs the charts on clusters with real nodes and containers. It does there the
// actions of users, and causes the usual failures. It prints the checks and their times.
//
// It needs root and a few packages (see localkube check), the programs in bin/ and the archives in
// images/: `make e2e`. It leaves nothing behind. With -keep, the clusters keep running after a
// failure until Ctrl-C.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	source := flag.String("source", ".", "directory of the checkout")
	keep := flag.Bool("keep", false, "after a failure, wait for Ctrl-C before the clusters are removed")
	only := flag.String("run", "", "regular expression of the scenarios to run; those that others build upon always run")
	except := flag.String("skip", "", "regular expression of the scenarios to leave out; those that others build upon always run")
	table := flag.String("table", "", "file to write the table of results to, as Markdown")
	from := flag.String("from", "", "revision whose charts and images a running fleet is upgraded from (default: where this branch left "+
		"main, or the commit before this one)")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, options{source: *source, keep: *keep, only: *only, except: *except, table: *table, from: *from}); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}
