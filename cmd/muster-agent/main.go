// Command muster-agent registers its own cluster with a Muster hub and keeps it registered.
package main

import (
	"os"

	"github.com/muster-fleet/muster/internal/agent/command"
)

func main() {
	os.Exit(command.Main())
}
