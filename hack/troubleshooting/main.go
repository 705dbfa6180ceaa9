// Command troubleshooting prints docs/troubleshooting.md: the causes in muster explain.
package main

import (
	"fmt"
	"os"

	"github.com/muster-fleet/muster/internal/ui/explain"
)

func main() {
	if err := explain.WritePage(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
