// Command images builds the container images of the hub and the agent as OCI archives, without a
// container runtime. An image has static programs for two architectures, the certificate
// authorities trusted by Mozilla, and a user other than root. It has nothing else.
//
// The same commit gives the same digest: an image depends on neither the machine nor the day.
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
