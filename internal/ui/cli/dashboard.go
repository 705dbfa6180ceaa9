package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/ui/dashboard"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// showing is the command muster dashboard.
type showing struct {
	genericiooptions.IOStreams
	*access
	port   int
	silent bool
}

func newDashboard(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	d := &showing{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:     "dashboard [[clusters|memberclusters] NAME]",
		Aliases: []string{"open"},
		Short:   "Show the fleet in a browser",
		Long: `Serve the dashboard on the loopback address of this machine, until Ctrl-C. Its pages show
the members, their problems, the deliveries, and the registration requests. With the name
of a member, the browser opens at its page; "muster open" is the same command.

The dashboard acts with the rights of the kubeconfig's user, through the API server of the
hub. It exposes nothing on the hub, and nothing has to run there. Keep the printed address
to yourself: anyone with the address acts as that user.`,
		Example: `  muster dashboard --context hub

  # Open the page of a member
  muster open clusters/web

  # Show one workspace, on a fixed port
  muster dashboard --namespace clusters --port 8800 --no-browser`,
		Args:              takes(0, 2, "at most the name of a member"),
		ValidArgsFunction: h.completeNames(lookedFor{"muster dashboard", kindsNamed("members")}),
		RunE:              func(command *cobra.Command, args []string) error { return d.run(command.Context(), args) },
	}
	command.Flags().IntVar(&d.port, "port", 0, "Port on the loopback address; a free port if 0")
	command.Flags().BoolVar(&d.silent, "no-browser", false, "Only print the address")
	complete(command, "port", cobra.NoFileCompletions)
	return h.acceptAllNamespaces(command)
}

func (d *showing) run(ctx context.Context, args []string) error {
	hub, server, err := d.client()
	if err != nil {
		return err
	}
	if err := d.seesMembers(ctx, hub, server); err != nil { // otherwise the pages retry forever
		return err
	}
	page := ""
	if len(args) > 0 {
		member, _, err := d.subject(ctx, lookedFor{"muster dashboard", kindsNamed("members")}, args)
		if err != nil {
			return err
		}
		page = "&to=" + url.QueryEscape("/members/"+view.NameOf(member))
	}
	config, err := d.ToRESTConfig()
	if err != nil {
		return d.explainConfig(err)
	}
	pages, err := dashboard.NewOwned(ctx, dashboard.Options{Config: config, Namespace: *d.Namespace})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(d.port)))
	if err != nil {
		return fmt.Errorf("serving the dashboard: %w; choose another port with --port", err)
	}
	address := "http://" + listener.Addr().String()
	fmt.Fprintf(d.Out, "The fleet of %s is at %s\nPress Ctrl-C to stop.\n", server, address+pages.Entrance()+page)
	if file, ok := d.Out.(*os.File); ok && !d.silent && term.IsTerminal(int(file.Fd())) {
		open(address + pages.Ticket() + page)
	}
	return pages.Serve(ctx, listener)
}

// seesMembers returns an error if the user may list members of neither kind.
func (d *showing) seesMembers(ctx context.Context, hub client.Client, server string) error {
	var refused []error
	for _, list := range kinds[0].lists(*d.Namespace) {
		err := hub.List(ctx, list.DeepCopyObject().(client.ObjectList), client.InNamespace(*d.Namespace), client.Limit(1))
		if err == nil {
			return nil
		}
		refused = append(refused, d.remedy(err, kinds[0].namespaced, list, server))
	}
	return errors.Join(refused...)
}

// open opens an address in the user's browser. The address is printed in any case.
func open(address string) {
	program := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if program == nil {
		program = []string{"xdg-open"}
	}
	command := exec.Command(program[0], append(program[1:], address)...) //nolint:gosec // one of three programs
	if command.Start() == nil {
		go func() { _ = command.Wait() }()
	}
}
