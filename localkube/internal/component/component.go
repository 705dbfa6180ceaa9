// Package component runs one part of Kubernetes in the calling process.
//
// The parts share process-global state (flags, feature gates, metric registries), so each of them
// has a process to itself. This package runs inside those processes, and is the only one to link
// the parts.
package component

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // registers client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // registers the version metric
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// Names of the components, also the names of their processes and logs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
	Proxy             = "kube-proxy"
)

// Run runs the named component until it ends and returns its exit code.
func Run(name string, args []string) int {
	var command *cobra.Command
	switch name {
	case Etcd:
		command = newEtcdCommand()
	case APIServer:
		command = apiserver.NewAPIServerCommand()
	case ControllerManager:
		command = controllermanager.NewControllerManagerCommand()
	case Scheduler:
		command = scheduler.NewSchedulerCommand()
	case Kubelet:
		command = kubelet.NewKubeletCommand(context.Background())
	case Proxy:
		command = proxy.NewProxyCommand()
	default:
		fmt.Fprintf(os.Stderr, "localkube has no component %q\n", name)
		return 2
	}
	// Some components read os.Args themselves during their start.
	os.Args = append([]string{name}, args...)
	command.SetArgs(args)
	return cli.Run(command)
}
