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
	var address, metricsAddress, namespace, trusted, grafana string
	var debug bool
	command := &cobra.Command{
		Use:   "dashboard",
		Short: "Serve pages that show the fleet",
		Long: `Serve pages that show the fleet. A visitor needs a token that the hub's API server accepts: in the
header Authorization, set by a proxy that signs users in, or on the sign-in page.

Visitors see and change what they can see and change with kubectl. The account of the dashboard
lists and watches the fleet, and changes nothing.

The dashboard serves HTTP. Put an HTTPS proxy in front of it, or use kubectl port-forward.`,
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
			pages, err := NewShared(ctx, Options{Config: config, Namespace: namespace, TrustedProxies: trusted, Grafana: grafana})
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
			log.Info("Dashboard started", "version", version.Version, "hub", config.Host, "address", listener.Addr().String())
			return pages.Serve(ctx, listener)
		},
	}
	set := command.Flags()
	set.StringVar(&address, "bind-address", ":8082", "address of the pages, /healthz and /readyz")
	set.StringVar(&metricsAddress, "metrics-bind-address", off, "address of /metrics, for example :8080; 0 switches it off")
	set.StringVar(&namespace, "only-namespace", "", "show only this workspace; default: all")
	set.StringVar(&trusted, "trusted-proxies", "",
		"networks of proxies whose header X-Forwarded-For is trusted, for example 10.0.0.0/8,fd00::/8; default: none")
	set.StringVar(&grafana, "grafana-url", "", "address of a Grafana board, for the link Metrics of all pages; default: no link")
	set.BoolVar(&debug, "debug", false, "write more log messages")
	return command
}
