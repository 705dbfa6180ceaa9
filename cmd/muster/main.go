// Command muster shows and changes a fleet: it does in one line what takes several of kubectl and helm.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/muster-fleet/muster/internal/cli"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	if err := cli.NewCommand(streams).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1) // cobra has printed the error
	}
}
