// Package cli is the command line of localkube: it reads flags and prints,
// and leaves the work to the cluster and component packages.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/muster-fleet/muster/localkube/internal/cluster"
	"github.com/muster-fleet/muster/localkube/internal/component"
	"github.com/muster-fleet/muster/localkube/internal/machine"
)

// Run acts as the program its first argument names and returns the exit code.
func Run(args []string) int {
	// kubectl and the components bring their own parsing, and must not be
	// made to share the flags of this command.
	switch {
	case filepath.Base(args[0]) == "kubectl":
		return component.Kubectl(args[1:])
	case len(args) > 1 && args[1] == "kubectl":
		return component.Kubectl(args[2:])
	case len(args) > 2 && args[1] == "component":
		return component.Run(args[2], args[3:])
	case len(args) > 2 && args[1] == machine.InitCommand:
		return machine.Init(args[2])
	}
	command := newCommand()
	command.SetArgs(args[1:])
	if err := command.Execute(); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 1
	}
	return 0
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "localkube",
		Short: "Run a real Kubernetes from one binary, without root or containers",
		Long: `localkube runs a real Kubernetes (etcd, kube-apiserver, kube-controller-manager,
kube-scheduler) and a node that runs Pods as processes of this machine or, as
root, in containers. It is for trying, developing and testing, not for data you
want to keep.`,
		Example: `  localkube up web
  export KUBECONFIG=~/.localkube/web/kubeconfig
  localkube kubectl get nodes`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	dir := root.PersistentFlags().String("dir", "", "directory of the clusters (default $LOCALKUBE_DIR, else ~/.localkube)")
	root.AddCommand(newUpCommand(dir), newDownCommand(dir), newDeleteCommand(dir), newListCommand(dir), newCheckCommand(),
		&cobra.Command{
			Use:                "kubectl ...",
			Short:              "Act as kubectl",
			Example:            `  KUBECONFIG=~/.localkube/web/kubeconfig localkube kubectl get pods -A`,
			DisableFlagParsing: true,
			// Run handles it before cobra; this entry is for the help.
			RunE: func(*cobra.Command, []string) error { return nil },
		})
	return root
}

func newUpCommand(root *string) *cobra.Command {
	var options cluster.Options
	var images []string
	command := &cobra.Command{
		Use:   "up NAME",
		Short: "Run a cluster until it is interrupted",
		Long: `Run a cluster in the foreground. Its state stays in the directory NAME below
--dir and is used again at the next start, with the same server URL.

With --node=kubelet, Pods run in containers: kubelet, containerd and kube-proxy
in namespaces of their own. That needs root and packages; see localkube check.
Such a cluster has no DNS and reaches no network, so its images are archives.`,
		Example: `  localkube up web
  localkube up web --node=kubelet --image muster-agent=images/muster-agent.tar
  localkube up web --image muster-agent=bin/muster-agent --image tools=bin/
  localkube up test --dir /tmp/clusters --node=false --audit --ready-file /tmp/test.ready`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			dir, err := clusterDir(*root, args[0])
			if err != nil {
				return err
			}
			if options.Images, err = parseImages(images, options.Node); err != nil {
				return err
			}
			if options.Authentication != "" { // the API server runs in another directory
				if options.Authentication, err = filepath.Abs(options.Authentication); err != nil {
					return err
				}
			}
			if options.UsageFile != "" { // so do the processes
				if options.UsageFile, err = filepath.Abs(options.UsageFile); err != nil {
					return err
				}
			}
			ctx, hurry := signals()
			options.Hurry, options.Out = hurry, command.OutOrStdout()
			return cluster.Up(ctx, dir, options)
		},
	}
	flags := command.Flags()
	flags.IntVar(&options.Port, "port", 0, "port of the API server; 0 picks a free one at the first start and keeps it")
	flags.StringArrayVar(&images, "image", nil, "NAME=PATH: run containers of image NAME with this program, a program of this directory or, "+
		"with --node=kubelet, this OCI archive; repeatable")
	options.Node = cluster.HostNode
	flags.Var((*nodeFlag)(&options.Node), "node",
		"what runs Pods: host processes (true), containers (kubelet) or nothing, the control plane alone (false)")
	flags.Lookup("node").NoOptDefVal = string(cluster.HostNode)
	flags.BoolVar(&options.Audit, "audit", false, "write every request to audit.log in the state directory")
	flags.StringVar(&options.Authentication, "authentication-config", "",
		"file with an AuthenticationConfiguration of the API server: who else signs users in (OIDC)")
	flags.BoolVar(&options.DefaultLimits, "default-limits", false,
		"leave kube-controller-manager at its default of 20 requests a second, as in most clusters")
	flags.BoolVar(&options.RestartEtcd, "restart-etcd", false,
		"when etcd ends, as on a full disk, start it again instead of ending the cluster")
	flags.StringVar(&options.Kubeconfig, "kubeconfig", "", "also add the cluster to this kubeconfig file")
	flags.StringVar(&options.ReadyFile, "ready-file", "", "write this file when the cluster is ready, remove it when it stops")
	flags.StringVar(&options.UsageFile, "usage-file", "",
		"append to this file a line for each process that ends: program, seconds of processor time")
	return command
}

type nodeFlag cluster.Node

func (n *nodeFlag) String() string { return string(*n) }
func (n *nodeFlag) Type() string   { return "true|false|kubelet" }

func (n *nodeFlag) Set(value string) error {
	switch node := cluster.Node(value); node {
	case cluster.NoNode, cluster.HostNode, cluster.KubeletNode:
		*n = nodeFlag(node)
		return nil
	}
	return errors.New("it is true, false or kubelet")
}

// signals ends the context at the first interrupt and closes the channel at
// the second: the user is in a hurry.
func signals() (context.Context, <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	hurry := make(chan struct{})
	received := make(chan os.Signal, 2)
	signal.Notify(received, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		<-received
		cancel()
		<-received
		close(hurry)
	}()
	return ctx, hurry
}

func parseImages(images []string, node cluster.Node) (map[string]string, error) {
	parsed := map[string]string{}
	for _, image := range images {
		name, path, found := strings.Cut(image, "=")
		if !found || name == "" || path == "" {
			return nil, fmt.Errorf("--image %q: write NAME=PATH, as in --image muster-agent=bin/muster-agent", image)
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, fmt.Errorf("--image %s: %w", image, err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("--image %s: %w; build it first", image, err)
		}
		if node == cluster.HostNode && !info.IsDir() && info.Mode()&0o111 == 0 {
			return nil, fmt.Errorf("--image %s: %s is not a program; make it executable: chmod +x %s", image, path, path)
		}
		parsed[name] = path
	}
	return parsed, nil
}

func clusterDir(root, name string) (cluster.Dir, error) {
	root, err := rootDir(root)
	if err != nil {
		return cluster.Dir{}, err
	}
	return cluster.NewDir(root, name)
}

func rootDir(root string) (string, error) {
	if root != "" {
		return root, nil
	}
	return cluster.DefaultRoot()
}
