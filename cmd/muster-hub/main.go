// Command muster-hub runs the hub of a fleet: it registers clusters and keeps an inventory of them.
package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/muster-fleet/muster/internal/hub/server"
)

func main() {
	if err := server.NewCommand().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1) // cobra has printed the error
	}
}
