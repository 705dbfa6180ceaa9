// Command images builds the container images of the hub and the agent as OCI archives, without a
// container runtime: static programs for two architectures, the certificate authorities that
// Mozilla trusts, a user that is not root, and nothing else.
//
// The same commit gives the same digest: nothing of the machine or the day is in an image.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}
