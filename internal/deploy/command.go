package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/agent/local"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/version"
)

type flags struct {
	kubeconfig, namespace string
	debug                 bool
}

// NewCommand is the command muster-deployer.
func NewCommand() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   deployer.Program,
		Short: "Deploy on this cluster what a Muster hub placed on it",
		Long: deployer.Program + ` makes the Helm releases of a cluster what the BundleDeployments on the hub say.

muster-agent starts it when there is something to deploy and tells it over its standard input, line by line, for which hub and with which
credential. It ends when its standard input does, and when nothing is left to deploy or to watch.`,
		Args:          cobra.NoArgs,
		Version:       version.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return f.run(ctx)
		},
	}
	set := command.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: env KUBECONFIG, else the Pod's service account)")
	set.StringVar(&f.namespace, "namespace", os.Getenv("NAMESPACE"), "namespace of the agent, in which the histories of releases are (default: env NAMESPACE)")
	set.BoolVar(&f.debug, "debug", false, "log more")
	return command
}

// Main runs the command and returns the exit code.
func Main() int {
	if err := NewCommand().ExecuteContext(context.Background()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", deployer.Program, err)
		return 1
	}
	return 0
}

func (f flags) run(ctx context.Context) error {
	if f.namespace == "" {
		return errors.New("--namespace or env NAMESPACE is required: the namespace in which the agent runs")
	}
	if os.Getenv("GOGC") == "" {
		// Between deployments it only watches: memory is dearer than the processor.
		debug.SetGCPercent(50)
	}
	if err := confine(); err != nil {
		return fmt.Errorf("limiting the memory of the program: %w", err)
	}
	log := logging.New(f.debug)
	config, err := local.Config(f.kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = deployer.Program + "/" + version.Version
	cluster, err := release.NewCluster(config, f.namespace)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first, ended := make(chan deployer.Order, 1), make(chan error, 1)
	var hub *remote.Member
	dialled := make(chan struct{})
	go func() {
		begun := false
		ended <- deployer.Receive(os.Stdin, func(order deployer.Order) {
			if !begun {
				begun = true
				first <- order
				<-dialled
				return
			}
			follow(log, hub, order)
		})
		// Without an agent nobody renews the credential, and a new agent starts its own deployer.
		cancel()
	}()
	var order deployer.Order
	trim()
	select {
	case order = <-first:
	case err := <-ended:
		return errors.Join(errors.New("standard input ended before an agent said for whom to deploy"), err)
	case <-ctx.Done():
		return nil
	}
	if hub, err = dial(order); err != nil {
		return err
	}
	close(dialled)
	return serve(ctx, log, cluster, hub, order)
}

// follow takes over what changed since the last order.
func follow(log logr.Logger, hub *remote.Member, order deployer.Order) {
	hub.SetToken(order.Token)
	if reflect.DeepEqual(order.Hub, hub.Target()) {
		return
	}
	moved, err := remote.Dial(order.Hub, order.Token, clock.RealClock{})
	if err != nil {
		log.Info("moving to another address of the hub failing", "reason", err.Error())
		return
	}
	hub.Move(moved)
}

func dial(order deployer.Order) (*remote.Member, error) {
	hub, err := remote.Dial(order.Hub, order.Token, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	return hub.Member(order.Namespace, order.Name)
}

func serve(ctx context.Context, log logr.Logger, cluster *release.Cluster, hub *remote.Member, order deployer.Order) error {
	log.Info("deployer started", "version", version.Version, "hub", order.Hub.Server, "namespace", order.Namespace)
	d := &Deployer{Cluster: cluster, Hub: hub, Member: order.Member, Log: log, Clock: clock.RealClock{}}
	err := d.Run(ctx)
	log.Info("deployer stopped")
	if ctx.Err() == nil {
		return err
	}
	return nil
}
