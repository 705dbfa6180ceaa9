package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/version"
)

const (
	flagHealth  = "--health-probe-bind-address"
	flagMetrics = "--metrics-bind-address"
)

// flags are those of the command.
type flags struct {
	kubeconfig, namespace, health, metrics string
	debug                                  bool
}

// NewCommand is the command muster-agent.
func NewCommand() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   "muster-agent",
		Short: "Register this cluster with a Muster hub and keep it registered",
		Long: `muster-agent runs on a member cluster. It registers the cluster with the hub that the Secret ` + naming.AgentBootstrapSecret + `
names, keeps the credential that it gets in the Secret ` + naming.AgentSecret + `, proves to the hub that it is alive, and reports the
cluster's nodes, capacity and health.`,
		Example: `  # In a Pod of the chart fleet-agent: the Pod's service account and NAMESPACE say where it is.
  muster-agent

  # Outside of the cluster that it serves, with other agents on the same machine.
  muster-agent --kubeconfig member.kubeconfig --namespace ` + naming.SystemNamespace + ` \
    ` + flagHealth + ` 127.0.0.1:18081 ` + flagMetrics + ` 0

  # Where does it stand?
  curl http://127.0.0.1:18081/readyz`,
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
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster that joins (default: env KUBECONFIG, else the Pod's service account)")
	set.StringVar(&f.namespace, "namespace", os.Getenv("NAMESPACE"),
		"namespace with the Secret "+naming.AgentBootstrapSecret+" (default: env NAMESPACE)")
	set.StringVar(&f.health, flagHealth[2:], ":8081", "address of /healthz and /readyz; 0 switches them off")
	set.StringVar(&f.metrics, flagMetrics[2:], ":8080", "address of /metrics; 0 switches it off")
	set.BoolVar(&f.debug, "debug", false, "log more")
	return command
}

// Main runs the command and returns the exit code.
func Main() int {
	if err := NewCommand().ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "muster-agent:", err)
		return 1
	}
	return 0
}

func (f flags) run(ctx context.Context) error {
	if f.namespace == "" {
		return fmt.Errorf("--namespace or env NAMESPACE is required: the namespace with the Secret %s", naming.AgentBootstrapSecret)
	}
	log := newLogger(f.debug)
	member, err := memberConfig(f.kubeconfig)
	if err != nil {
		return err
	}
	hostname, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the host's name: %w", err)
	}
	if name := os.Getenv("HOSTNAME"); name != "" {
		hostname = name
	}
	agent, err := New(Options{Member: member, Namespace: f.namespace, Hostname: hostname, Log: log})
	if err != nil {
		return err
	}
	if err := serve(ctx, f.health, flagHealth, health(agent.Standing)); err != nil {
		return err
	}
	if err := serve(ctx, f.metrics, flagMetrics, metrics()); err != nil {
		return err
	}
	log.Info("agent started", "version", version.Version, "member", member.Host, "namespace", f.namespace)
	agent.Run(ctx)
	log.Info("agent stopped")
	return nil
}

// newLogger logs to stderr and makes the Kubernetes libraries do the same.
func newLogger(debug bool) logr.Logger {
	level := slog.LevelInfo
	if debug {
		level = slog.LevelDebug
	}
	log := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	klog.SetLogger(log)
	return log
}

// memberConfig reaches the cluster that joins.
func memberConfig(kubeconfig string) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	if kubeconfig == "" {
		kubeconfig = os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
		rules = &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(kubeconfig)}
	}
	if kubeconfig != "" {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("--kubeconfig or env KUBECONFIG is required outside of a Pod: the kubeconfig of the cluster that joins")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Pod's service account: %w", err)
	}
	return config, nil
}
