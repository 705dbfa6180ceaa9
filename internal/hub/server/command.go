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
		Short: "Run the hub of a fleet",
		Long: `muster-hub runs on the hub cluster. It creates the values for new clusters from
ClusterRegistrationTokens, and grants or denies their ClusterRegistrations. It prepares a namespace
for each member, and delivers Bundles and placements. The charts fleet-crd and fleet install it.`,
		Example: `  # In a Pod of the chart fleet, with the Pod's service account and the variable NAMESPACE
  muster-hub

  # Outside the hub cluster, without open ports
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
	command.AddCommand(newCheck(configure, &options.Namespace), newBackup(configure), dashboard.NewCommand(configure),
		gitops.NewCommand(configure, &options.Namespace))
	command.CompletionOptions.DisableDefaultCmd = true
	common := command.PersistentFlags()
	common.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the hub cluster (default: env KUBECONFIG, else the Pod's service account)")
	common.StringVar(&options.Namespace, "namespace", os.Getenv("NAMESPACE"), "the hub's system namespace (default: env NAMESPACE)")
	options.addFlags(command)
	command.Flags().BoolVar(&debug, "debug", false, "write more log messages")
	return command
}

// addFlags adds the flags of all options except the namespace, because other commands share it.
func (o *Options) addFlags(to *cobra.Command) {
	set := to.Flags()
	set.BoolVar(&o.LeaderElect, "leader-elect", true, "elect a leader among the replicas, with a Lease in the system namespace; "+
		"without it, members may show as Lost for a moment after the API server has refused all writes")
	set.DurationVar(&o.Election.LeaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"time after the last renewal of the Lease until another replica becomes the leader")
	set.DurationVar(&o.Election.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"time for the leader to renew its Lease; otherwise it exits")
	set.DurationVar(&o.Election.RetryPeriod, "leader-elect-retry-period", 2*time.Second,
		"interval of the leader to renew its Lease, and of the others to check it")
	set.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 turns it off")
	set.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 turns them off")
	set.BoolVar(&o.WithoutGitOps, "without-gitops", false,
		"run without muster-hub gitops: report it on GitRepos, and grant gitops no rights on Secrets")
	set.StringVar(&o.StateDir, "state-dir", "",
		"directory for notes about dangerous work; after a crash, the next hub in the same Pod reads them (default: none)")
}
