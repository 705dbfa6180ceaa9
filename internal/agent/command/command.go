// Package command is the program muster-agent: its flags, its probes and metrics, and the command
// check for the status of running agents.
//
// Its invariant: the process listens before the agent starts, ends when its context does, and
// writes nothing itself.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/agent/supervise"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/hublogin"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/process"
	"github.com/muster-fleet/muster/internal/version"
)

const (
	flagHealth  = "--health-probe-bind-address"
	flagMetrics = "--metrics-bind-address"
)

var errNamespace = errors.New("--namespace or env NAMESPACE is required: the namespace of the agent")

// flags are the flags of the command.
type flags struct {
	kubeconfig, namespace, health, metrics string
	debug, delivery                        bool

	member      agent.Membership
	tokenSecret string
	deployment  string
	// deployed is set if a flag names the agent's Deployment.
	deployed    bool
	host        host
	facts       string
	kubeconfigs agent.HubKubeconfig
}

// NewCommand returns the command muster-agent.
func NewCommand() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   "muster-agent",
		Short: "Register this cluster with a Muster hub and keep it registered",
		Long: `muster-agent runs on a member cluster. It sends heartbeats to the hub, reports the nodes, the
capacity and the health of the cluster, and deploys the hub's deliveries.

A cluster joins in one of two ways. With --hub-server-url, it joins as a MemberCluster with the
token in the Secret --hub-token-secret. Otherwise the agent registers the cluster with the hub of
the Secret ` + naming.AgentBootstrapSecret + `, and keeps its credential in the Secret ` + naming.AgentSecret + `.`,
		Example: `  # In a Pod of the chart fleet-agent, with the Pod's service account and the variable NAMESPACE
  muster-agent

  # Outside the member cluster, beside other agents on the same machine
  muster-agent --kubeconfig member.kubeconfig --namespace ` + naming.SystemNamespace + ` \
    ` + flagHealth + ` 127.0.0.1:18081 ` + flagMetrics + ` 0

  # As the agent of a MemberCluster, outside the member cluster
  muster-agent --kubeconfig member.kubeconfig --namespace ` + naming.MemberSystemNamespace + ` \
    --hub-server-url https://hub.example.com:6443 --member-cluster-name web

  # Show the state of the agent
  curl http://127.0.0.1:18081/readyz`,
		Args:          cobra.NoArgs,
		Version:       version.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			// A second signal does not wait for a deployment in progress.
			context.AfterFunc(ctx, stop)
			f.deployed = command.Flags().Changed("deployment")
			return f.run(ctx)
		},
	}
	command.AddCommand(newCheck())
	command.CompletionOptions.DisableDefaultCmd = true
	set := command.Flags()
	set.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig of the member cluster (default: env KUBECONFIG, else the Pod's service account)")
	f.host.add(set)
	set.StringVar(&f.namespace, "namespace", os.Getenv("NAMESPACE"),
		"namespace with the Secret "+naming.AgentBootstrapSecret+" (default: env NAMESPACE)")
	set.StringVar(&f.health, flagHealth[2:], ":8081", "address of /healthz and /readyz; 0 turns them off")
	set.StringVar(&f.metrics, flagMetrics[2:], ":8080", "address of /metrics; 0 turns it off")
	f.addMembership(set)
	set.BoolVar(&f.delivery, "delivery", os.Getenv("DELIVERY") != "false",
		"deploy the hub's deliveries with the program "+protocol.Program+" in the same directory (default: env DELIVERY, else true)")
	set.StringVar(&f.facts, "facts-config-map", os.Getenv("FACTS_CONFIG_MAP"),
		"name of a ConfigMap with custom facts in the namespace of the agent (default: env FACTS_CONFIG_MAP, else none)")
	set.StringVar(&f.kubeconfigs.Secret, "hub-kubeconfig-secret", os.Getenv("HUB_KUBECONFIG_SECRET"),
		"name of a Secret in the namespace of the agent with a kubeconfig of the hub in its key "+hublogin.Key+", in place of a token "+
			"(default: env HUB_KUBECONFIG_SECRET, else none)")
	set.StringVar(&f.kubeconfigs.Context, "hub-kubeconfig-context", os.Getenv("HUB_KUBECONFIG_CONTEXT"),
		"context of the hub's kubeconfig (default: env HUB_KUBECONFIG_CONTEXT, else its current context)")
	set.BoolVar(&f.debug, "debug", false, "write more log messages")
	return command
}

// addMembership adds the flags of the agent of a MemberCluster.
func (f *flags) addMembership(set *pflag.FlagSet) {
	set.StringVar(&f.member.Server, "hub-server-url", os.Getenv("HUB_SERVER_URL"),
		"URL of the hub with the MemberCluster of this cluster (default: env HUB_SERVER_URL)")
	set.StringVar(&f.member.Name, "member-cluster-name", os.Getenv("MEMBER_CLUSTER_NAME"),
		"name of the MemberCluster (default: env MEMBER_CLUSTER_NAME)")
	set.StringVar(&f.member.Namespace, "member-namespace", os.Getenv("MEMBER_NAMESPACE"),
		"member namespace on the hub after a revocation of the MemberCluster (default: env MEMBER_NAMESPACE, else from its name)")
	set.StringVar(&f.member.CA, "hub-certificate-authority", os.Getenv("HUB_CERTIFICATE_AUTHORITY"),
		"CA of the hub, PEM or base64 of PEM (default: env HUB_CERTIFICATE_AUTHORITY, else ca.crt of the Secret, the fallback, the system's)")
	set.StringVar(&f.member.FallbackCA, "hub-certificate-authority-fallback", os.Getenv("HUB_CERTIFICATE_AUTHORITY_FALLBACK"),
		"CA of the hub without --hub-certificate-authority and without ca.crt in the Secret (default: env HUB_CERTIFICATE_AUTHORITY_FALLBACK)")
	set.StringVar(&f.tokenSecret, "hub-token-secret", cmp.Or(os.Getenv("HUB_TOKEN_SECRET"), "default/hub-kubeconfig-secret"),
		"NAMESPACE/NAME of the Secret with the hub's token (default: env HUB_TOKEN_SECRET)")
	set.StringVar(&f.member.Release, "release", os.Getenv("HELM_RELEASE"),
		"NAMESPACE/NAME of the Helm release of the agent of a MemberCluster, so that the hub can upgrade it (default: env HELM_RELEASE)")
	set.StringVar(&f.deployment, "deployment", cmp.Or(os.Getenv("DEPLOYMENT"), naming.MemberAgentChart),
		"name of the agent's Deployment on the member; an agent with --kubeconfig removes itself only with this flag (default: env DEPLOYMENT)")
	set.BoolVar(&f.member.UpgradedByUser, "upgraded-by-user", os.Getenv("UPGRADED_BY_HUB") == "false",
		"refuse upgrades by the hub (default: whether env UPGRADED_BY_HUB is false)")
	set.BoolVar(&f.member.Insecure, "tls-insecure", false, "do not verify the hub's certificate; an attacker can then read the token")
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
		return errNamespace
	}
	membership, err := f.membership()
	if err != nil {
		return err
	}
	process.SaveMemory()
	log := logging.New(f.debug)
	hostname, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("reading the host's name: %w", err)
	}
	if name := os.Getenv("HOSTNAME"); name != "" {
		hostname = name
	}
	delivery, err := f.deliveryOptions(hostname, membership != nil)
	if err != nil {
		return err
	}
	options := agent.Options{
		Namespace: f.namespace, Hostname: hostname, Delivery: delivery, Membership: membership, Log: log,
		FactsConfigMap: f.facts, HubKubeconfig: f.kubeconfigs, Deployment: f.ownDeployment(membership != nil), Hosted: f.host.secret != "",
	}
	if f.host.secret != "" {
		return f.runHosted(ctx, options)
	}
	if options.Member, err = kubeclient.Config(f.kubeconfig); err != nil {
		return err
	}
	running, err := agent.New(options)
	if err != nil {
		return err
	}
	if err := f.serve(ctx, running.Status); err != nil {
		return err
	}
	log.Info("Agent started", "version", version.Version, "member", options.Member.Host, "namespace", f.namespace)
	running.Run(ctx)
	log.Info("Agent stopped")
	return nil
}

// serve answers the probes with a status, and serves the metrics, until ctx ends.
func (f flags) serve(ctx context.Context, status func() (agent.State, string, bool)) error {
	if err := serve(ctx, f.health, flagHealth, health(status)); err != nil {
		return err
	}
	return serve(ctx, f.metrics, flagMetrics, metrics())
}

// deliveryOptions returns the path and the arguments of the deployer.
func (f flags) deliveryOptions(hostname string, member bool) (agent.Delivery, error) {
	path, err := supervise.Beside()
	if err != nil {
		return agent.Delivery{}, err
	}
	lease := naming.AgentLease
	if member {
		lease = naming.MemberAgentLease
	}
	// A new deployer in place of a crashed one need not wait for the Lease.
	holder := hostname + "_" + string(uuid.NewUUID())
	arguments := []string{"--namespace=" + f.namespace, "--lease=" + lease, "--holder=" + holder}
	if f.kubeconfig != "" {
		arguments = append(arguments, "--kubeconfig="+f.kubeconfig)
	}
	if member && f.member.Release != "" {
		arguments = append(arguments, "--agent-release="+f.member.Release, "--agent-deployment="+f.deployment)
	}
	if f.debug {
		arguments = append(arguments, "--debug")
	}
	return agent.Delivery{Path: path, Arguments: arguments, Off: !f.delivery}, nil
}

// ownDeployment returns the name of the agent's Deployment on its cluster; "" if it runs elsewhere.
func (f flags) ownDeployment(member bool) string {
	switch {
	case f.host.secret != "":
		return naming.HostedAgentConfigMap // it marks the member in place of a Deployment
	case f.deployed:
		return f.deployment
	case f.kubeconfig != "" || os.Getenv("KUBECONFIG") != "":
		return ""
	case member:
		return f.deployment
	}
	return naming.AgentBundlePrefix
}

// membership returns the MemberCluster of the flags; nil if they name none.
func (f flags) membership() (*agent.Membership, error) {
	m := f.member
	if m.Server == "" && m.Name == "" {
		if m.CA != "" || m.Insecure {
			return nil, errors.New("--hub-server-url (HUB_SERVER_URL) and --member-cluster-name (MEMBER_CLUSTER_NAME) are required with the other " +
				"settings of a hub")
		}
		return nil, nil //nolint:nilnil // there is none
	}
	m.SecretNamespace, m.SecretName, _ = strings.Cut(f.tokenSecret, "/")
	m, err := m.Validate()
	return &m, err
}
