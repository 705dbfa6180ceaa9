// Package deploy is the program muster-deployer. It handles the orders of the agent, holds the
// Lease, runs the packages bundle and work, and replies with their state. Package bundle makes Helm
// releases of BundleDeployments; package work applies Works.
//
// The agent starts the program with the first BundleDeployment or Work. The memory of Helm or a
// runaway chart therefore does not affect the heartbeat.
//
// Its invariant: only the holder of the agent's Lease deploys or removes anything, and the process
// ends with its agent. The package itself writes only this Lease.
package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/bundle"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/deploy/render"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/process"
	"github.com/muster-fleet/muster/internal/version"
)

type flags struct {
	kubeconfig, namespace string
	// release and deployment name the release and the Deployment of a MemberCluster's agent.
	release, deployment string
	debug               bool
	lease               lease
	renderTimeout       time.Duration
}

// NewCommand returns the command muster-deployer.
func NewCommand() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   protocol.Program,
		Short: "Deploy the deliveries of a Muster hub on this cluster",
		Long: protocol.Program + ` installs the Helm releases of the BundleDeployments on the hub, and applies the Works.

muster-agent starts the program when there is something to deploy, and sends it the hub's address
and the credential on the standard input, line by line. The program exits when its standard input
ends, or when nothing is left to deploy or to watch.`,
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
	set.StringVar(&f.namespace, "namespace", os.Getenv("NAMESPACE"),
		"namespace of the agent (default: env NAMESPACE)")
	set.StringVar(&f.release, "agent-release", "", "NAMESPACE/NAME of the agent's own release of chart "+naming.MemberAgentChart)
	set.StringVar(&f.deployment, "agent-deployment", naming.MemberAgentChart, "name of the agent's Deployment, with --agent-release")
	set.StringVar(&f.lease.name, "lease", naming.AgentLease, "name of the Lease of the active deployer, in the namespace of the agent")
	set.StringVar(&f.lease.holder, "holder", "",
		"holder of the Lease; a deployer that replaces another has the same holder (default: a new one)")
	set.DurationVar(&f.lease.duration, "lease-duration", leaseDuration,
		"time until another deployer takes over after a crash")
	set.DurationVar(&f.renderTimeout, "render-timeout", bundle.RenderTimeout, "maximum time to render a chart")
	set.BoolVar(&f.debug, "debug", false, "write more log messages")
	return command
}

// Main runs the command and returns the exit code.
func Main() int {
	if render.Asked() {
		return render.Main()
	}
	if err := NewCommand().ExecuteContext(context.Background()); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", protocol.Program, err)
		return 1
	}
	return 0
}

func (f flags) run(ctx context.Context) error {
	if f.namespace == "" {
		return errors.New("--namespace or env NAMESPACE is required: the namespace of the agent")
	}
	process.SaveMemory()
	memory, err := confine(os.Getenv("MEMORY_LIMIT"))
	if err != nil {
		return fmt.Errorf("limiting the memory of the program: %w", err)
	}
	log := logging.New(f.debug)
	ctrl.SetLogger(logging.Libraries(log))
	config, err := kubeclient.Config(f.kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = protocol.Program + "/" + version.Version
	cluster, err := release.NewCluster(config, f.namespace)
	if err != nil {
		return err
	}
	if f.release != "" {
		namespace, name, _ := strings.Cut(f.release, "/")
		cluster.Agent = release.Agent{
			ID: release.ID{Namespace: namespace, Name: name}, Chart: naming.MemberAgentChart, Deployment: f.deployment,
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	orders, ended := make(chan protocol.Order), make(chan error, 1)
	go func() {
		err := protocol.ReadOrders(os.Stdin, func(order protocol.Order) {
			select {
			case orders <- order:
			case <-ctx.Done():
			}
		})
		ended <- err
		// Without an agent the credential expires, and a new agent starts a deployer of its own.
		cancel()
	}()
	select {
	case first := <-orders:
		f.lease.namespace = f.namespace
		f.lease.holder = cmp.Or(f.lease.holder, newHolder())
		d := &controllers{config: config, cluster: cluster, log: log, end: cancel, lease: f.lease, replies: os.Stdout}
		d.attempts, d.renderer = &bundle.Attempts{Reply: d.reply}, render.New(memory, f.renderTimeout)
		return serve(logr.NewContext(ctx, log), d, first, orders)
	case err := <-ended:
		return errors.Join(errors.New("standard input ended before the order of an agent"), err)
	case <-ctx.Done():
		return nil
	}
}

// serve handles orders until the process has nothing left to do.
func serve(ctx context.Context, d *controllers, first protocol.Order, orders <-chan protocol.Order) error {
	hub, err := hubclient.Dial(first.Hub, first.Token, clock.RealClock{})
	if err != nil {
		return err
	}
	if d.hub, err = hub.Member(first.Namespace, first.Name); err != nil {
		return err
	}
	d.hub.Obey(first.HubTerm)
	d.member, d.lost, d.unknown = first.Member, first.Lost, map[protocol.Kind]unknown{}
	d.idle, d.left, d.removing = map[protocol.Kind]bool{}, map[protocol.Kind]applied.Remaining{}, make(chan struct{})
	d.log.Info("Deployer started", "version", version.Version, "hub", first.Hub.Server, "namespace", first.Namespace)
	acquired, release, err := d.lease.acquire(ctx, d.cluster.Kube, d.leaseFailing, exitLost)
	if err != nil {
		return err
	}
	// Another deployer may start after the running operations have ended.
	defer release()
	defer d.running.Wait()
	alive, ended := context.WithCancel(context.WithoutCancel(ctx))
	defer ended()
	go d.reportAlive(alive)
	for order, leads := first, false; ; {
		if d.removesAll() && order.Leave != clusterv1beta1.LeaveDelete || order.Leave == clusterv1beta1.LeaveOrphan {
			d.end() // begun work cannot be undone: the agent starts another program if there is more to do
		}
		d.attempts.SetSuspects(order.Suspects)
		if leads {
			d.handleOrder(ctx, order)
		}
		select {
		case <-ctx.Done():
			d.running.Wait()
			d.log.Info("Deployer stopped")
			return nil
		case <-acquired:
			acquired, leads = nil, true
			d.log.Info("Deployer took its Lease", "lease", d.lease.String())
		case order = <-orders:
			followOrder(d.log, d.hub, order)
		}
	}
}

// followOrder applies the credential, the term and the hub's address of an order.
func followOrder(log logr.Logger, hub *hubclient.Member, order protocol.Order) {
	hub.SetToken(order.Token)
	hub.Obey(order.HubTerm)
	if reflect.DeepEqual(order.Hub, hub.Target()) {
		return
	}
	moved, err := hubclient.Dial(order.Hub, order.Token, clock.RealClock{})
	if err != nil {
		log.Info("Failed to move to another address of the hub", "reason", err.Error())
		return
	}
	hub.Move(moved)
	log.Info("Moved to another address of the hub", "hub", order.Hub.Server)
}
