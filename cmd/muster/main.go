// Command muster shows and changes a fleet. One line of it replaces several of kubectl and helm.
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
	klog.SetLogger(logr.Discard()) // client-go logs each returned error, too
	ctrl.SetLogger(logr.Discard()) // controller-runtime complains after half a minute without a logger
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	name := "muster"
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-") {
		name = "kubectl muster" // kubectl calls its plugin kubectl-muster by this name
	}
	if err := cli.NewCommand(name, streams).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(cli.ExitCode(err)) // cobra has printed the error
	}
}
