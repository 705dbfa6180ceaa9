// Command promises writes docs/promises.md: each promise of the README and the docs, its tests or
// figures, and the last result.
//
// The promises are in promises.yaml, the results of their tests in results.json. With -run, the
// command runs these tests first, and stores their results. With -from, it stores the results of a
// run of all tests. Its invariant: a promise needs tests, or a figure with its day, its page and
// its command.
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
	from := flag.String("from", "", "take the results from a file: make test TEST=-results=FILE writes it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := write(ctx, *run, *from); err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err)
		os.Exit(1)
	}
}
