package server

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/muster-fleet/muster/internal/hub/gitops"
	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/process"
	"github.com/muster-fleet/muster/internal/ui/dashboard"
	"github.com/muster-fleet/muster/internal/version"
)

var errNamespace = errors.New("--namespace or env NAMESPACE is required: the namespace with the ConfigMap " + naming.HubConfigMap)

// NewCommand returns the command muster-hub.
func NewCommand() *cobra.Command {
	var kubeconfig string
	var debug bool
	options := Options{Holder: holder(os.Getenv("POD_NAME"), os.Getenv("POD_UID"))}
	configure := func() (*rest.Config, error) {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = kubeconfig
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("finding the hub cluster: %w", err)
		}
		return config, nil
	}
	command := &cobra.Command{
		Use:   "muster-hub",
		Short: "Register clusters into a fleet and keep the roll",
		Long: `muster-hub runs on the hub cluster. It answers ClusterRegistrationTokens with the values for new
clusters, decides on ClusterRegistrations, prepares a namespace for every member, and shows on
every Cluster whether its agent is alive. The charts fleet-crd and fleet install it.`,
		Example: `  # In a Pod of the chart fleet: the Pod's service account and NAMESPACE say where it is.
  muster-hub

  # Outside of the cluster that it serves, with no ports open.
  muster-hub --kubeconfig hub.kubeconfig --namespace ` + naming.SystemNamespace + ` \
    --metrics-bind-address 0 --health-probe-bind-address 0`,
		Args:         cobra.NoArgs,
		Version:      version.Version,
		SilenceUsage: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.Namespace == "" {
				return errNamespace
			}
			if err := options.Election.validate(); err != nil {
				return err
			}
			process.SaveMemory()
			log := logging.New(debug)
			ctrl.SetLogger(logging.Libraries(log))
			config, err := configure()
			if err != nil {
				return err
			}
			log.Info("Hub started", "version", version.Version, "hub", config.Host, "namespace", options.Namespace)
			return Run(logr.NewContext(command.Context(), log), config, options)
		},
	}
	command.AddCommand(newCheck(configure, &options.Namespace), dashboard.NewCommand(configure),
		gitops.NewCommand(configure, &options.Namespace))
	command.CompletionOptions.DisableDefaultCmd = true
	common := command.PersistentFlags()
	common.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the hub cluster (default: env KUBECONFIG, else the Pod's service account)")
	common.StringVar(&options.Namespace, "namespace", os.Getenv("NAMESPACE"), "the hub's system namespace (default: env NAMESPACE)")
	options.addFlags(command)
	command.Flags().BoolVar(&debug, "debug", false, "log more")
	return command
}

// addFlags adds the flags of all options except the namespace, which other commands share.
func (o *Options) addFlags(to *cobra.Command) {
	set := to.Flags()
	set.BoolVar(&o.LeaderElect, "leader-elect", true, "let one of several replicas work, by a Lease in the system namespace; a hub without "+
		"that does not notice while its cluster refuses all writes, and may show members as lost for a moment after that")
	set.DurationVar(&o.Election.LeaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"how long after the last renewal of its Lease a leader is taken for gone")
	set.DurationVar(&o.Election.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"how long a leader tries to renew its Lease before it ends")
	set.DurationVar(&o.Election.RetryPeriod, "leader-elect-retry-period", 2*time.Second,
		"how often a leader renews its Lease, and the others look at it")
	set.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 switches it off")
	set.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 switches them off")
	set.BoolVar(&o.WithoutGitOps, "without-gitops", false,
		"show on GitRepos that muster-hub gitops does not run, and give it no right on Secrets")
	set.StringVar(&o.StateDir, "state-dir", "",
		"directory for notes of what may kill the hub; the next hub in the same Pod reads them (default: none)")
}
