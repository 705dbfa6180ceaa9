package dashboard

import (
	"fmt"
	"net"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/process"
	"github.com/muster-fleet/muster/internal/version"
)

// NewCommand returns the command muster-hub dashboard; configure reaches the hub cluster.
func NewCommand(configure func() (*rest.Config, error)) *cobra.Command {
	var address, metricsAddress, namespace, trusted string
	var debug bool
	command := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve pages that show the fleet",
		Long: `dashboard serves pages that show the fleet to whoever shows a token that the API server of the hub
accepts: in the header Authorization, which a proxy that signs users in sets, or on the page to
sign in. Each sees and does what he may do with kubectl. Its own account lists and watches what is
shown, and changes nothing.

It speaks HTTP: put it behind something that speaks HTTPS, or use kubectl port-forward.`,
		Example: `  muster-hub dashboard --kubeconfig dashboard.kubeconfig --bind-address 127.0.0.1:8082`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			process.SaveMemory()
			log := logging.New(debug)
			ctrl.SetLogger(logging.Libraries(log))
			ctx := logr.NewContext(command.Context(), log)
			config, err := configure()
			if err != nil {
				return err
			}
			pages, err := NewShared(ctx, Options{Config: config, Namespace: namespace, TrustedProxies: trusted})
			if err != nil {
				return err
			}
			listener, err := new(net.ListenConfig).Listen(ctx, "tcp", process.BindAddress(address))
			if err != nil {
				return fmt.Errorf("serving the dashboard: %w", err)
			}
			if err := pages.serveMetrics(ctx, metricsAddress); err != nil {
				return err
			}
			log.Info("dashboard started", "version", version.Version, "hub", config.Host, "address", listener.Addr().String())
			return pages.Serve(ctx, listener)
		},
	}
	set := command.Flags()
	set.StringVar(&address, "bind-address", ":8082", "where the pages, /healthz and /readyz are served")
	set.StringVar(&metricsAddress, "metrics-bind-address", off, "address of /metrics, such as :8080; 0 switches it off")
	set.StringVar(&namespace, "only-namespace", "", "show what is in this workspace only; all if not said")
	set.StringVar(&trusted, "trusted-proxies", "",
		"networks of proxies whose header X-Forwarded-For is believed, such as 10.0.0.0/8,fd00::/8; none if not said")
	set.BoolVar(&debug, "debug", false, "log more")
	return command
}
