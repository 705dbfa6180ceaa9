// Command promises writes docs/promises.md: each promise of the README and the docs, its tests or
// figures, and the last result.
//
// The promises are in promises.yaml, the results of their tests in results.json. With -run, the
// command runs these tests first, and stores their results. Its invariant: a promise needs tests,
// or a figure with its day, its page and its command.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	run := flag.Bool("run", false, "run the tests of the promises first, and store their results")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := write(ctx, *run); err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err)
		os.Exit(1)
	}
}
