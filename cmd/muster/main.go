// Command muster shows and changes a fleet: it does in one line what takes several of kubectl and helm.
package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/muster-fleet/muster/internal/ui/cli"
)

func main() {
	klog.SetLogger(logr.Discard()) // client-go logs each error that it returns, too
	ctrl.SetLogger(logr.Discard()) // which complains after half a minute if nobody sets one
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	name := "muster"
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		name = "kubectl muster" // by which kubectl calls its plugin kubectl-muster
	}
	if err := cli.NewCommand(name, streams).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(cli.ExitCode(err)) // cobra has printed the error
	}
}
