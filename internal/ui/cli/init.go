package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/muster-fleet/muster/internal/naming"
)

// hubDeployment is that of the chart fleet.
const hubDeployment = "fleet-controller"

// initializer is the command muster init.
type initializer struct {
	genericiooptions.IOStreams
	*access
	chartValues
	hubURL        string
	dryRun, print bool
	timeout       time.Duration
	// takesOver says that what the charts make may be there already, as the objects of another hub, replaces that so may its releases.
	takesOver, replaces bool
}

func newInit(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	i := &initializer{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "init",
		Short: "Install the hub on a cluster, or upgrade it",
		Long: `init makes the cluster of the context a hub: it installs the charts fleet-crd and fleet, which it brings along, or upgrades them, and waits until the hub runs.
The releases are Helm's, in namespace ` + naming.SystemNamespace + `. What was set before stays; given again it changes nothing but the version. Members reach the hub at the
address and with the CA of the kubeconfig unless --hub-url or the values apiServerURL and apiServerCA say otherwise.`,
		Example: `  muster init --context hub
  muster init --context hub --hub-url https://hub.example.com:6443 --set controller.replicas=2

  # What it would do, and what it would make, for GitOps.
  muster init --context hub --dry-run
  muster init --context hub --print > hub.yaml`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return interruptible(command.Context(), i.run(command.Context()))
		},
	}
	i.addFlags(command, "fleet")
	flags := command.Flags()
	flags.StringVar(&i.hubURL, "hub-url", "", "the address of the hub's API server as members reach it")
	flags.BoolVar(&i.dryRun, "dry-run", false, "only look whether it can be installed, and say what would be done")
	flags.BoolVar(&i.print, "print", false, "only print the objects of both charts")
	flags.DurationVar(&i.timeout, "timeout", 5*time.Minute, "how long to wait until the hub runs; 0 for not at all")
	return command
}

// hubCharts are those of a hub, in the order in which they are installed.
func hubCharts() []chartRelease {
	return []chartRelease{{"fleet-crd", naming.SystemNamespace}, {"fleet", naming.SystemNamespace}}
}

func (i *initializer) run(ctx context.Context) error {
	cluster, err := i.checked()
	if err != nil {
		return err
	}
	p := newProgress(i.Out)
	if i.print {
		return i.printCharts(ctx, cluster)
	}
	if err := i.mayInstall(ctx, cluster); err != nil {
		return err
	}
	for _, r := range hubCharts() {
		if err := i.install(ctx, &p, cluster, r); err != nil {
			return err
		}
	}
	if i.dryRun || i.timeout <= 0 {
		return p.err
	}
	ctx, cancel := context.WithTimeout(ctx, i.timeout)
	defer cancel()
	if err := cluster.awaitHub(ctx, &p); err != nil {
		return err
	}
	p.line("The hub is up. A cluster joins it with: muster join --context CLUSTER --hub-context %s", i.contextName())
	return p.err
}

// mayInstall is what keeps the charts from being installed: rights that are missing, definitions that cannot be changed into ours, or a release of
// somebody else's.
func (i *initializer) mayInstall(ctx context.Context, cluster *checked) error {
	err := require(ctx, append(cluster.reachable(), cluster.may("install the hub",
		right{"create", "", "namespaces", ""}, right{"create", "", "secrets", naming.SystemNamespace}, right{"create", "apiextensions.k8s.io", "customresourcedefinitions", ""},
		right{"create", "rbac.authorization.k8s.io", "clusterrolebindings", ""}, right{"escalate", "rbac.authorization.k8s.io", "clusterroles", ""})))
	if err != nil {
		return err
	}
	for _, c := range []check{cluster.definitionsFit(), cluster.rolesFit(), i.releasesFit(), i.objectsFit(cluster)} { // all of them, so that a user hears of all at once
		err = errors.Join(err, require(ctx, []check{c}))
	}
	return err
}

// releasesFit checks that the releases of the hub are of this project's charts.
func (i *initializer) releasesFit() check {
	return check{"releases", false, func(context.Context) (string, error) {
		for _, r := range hubCharts() {
			helm, err := i.helm(r)
			if err != nil {
				return "", err
			}
			helm.replaces = i.replaces
			if _, _, err := helm.plan(); err != nil {
				return "", err // the other one is of the same software
			}
		}
		return "the releases can be installed", nil
	}}
}

// install installs one of the charts of the hub, or says what it would do.
func (i *initializer) install(ctx context.Context, p *progress, cluster *checked, r chartRelease) error {
	helm, err := i.helm(r)
	if err != nil {
		return err
	}
	helm.takesOver, helm.replaces = i.takesOver, i.replaces
	given, err := i.valuesOf(cluster, helm)
	if err != nil {
		return err
	}
	if i.dryRun {
		chart, does, err := helm.plan()
		if err != nil {
			return err
		}
		p.step("%s chart %s %s in namespace %s", does, chart.Name(), chart.Metadata.Version, r.namespace)
		return p.err
	}
	made, err := helm.deploy(ctx, given)
	if err != nil {
		return err
	}
	p.step("chart %s %s is installed, revision %d", r.chart, made.Chart.Metadata.Version, made.Version)
	return p.err
}

// valuesOf are those that the user gives for a chart. A hub that is new, or that never knew its address, learns it from the kubeconfig.
func (i *initializer) valuesOf(cluster *checked, helm *helmOn) (map[string]any, error) {
	if helm.chart != "fleet" {
		return map[string]any{}, nil
	}
	set := map[string]any{}
	has, err := helm.values()
	if err != nil {
		return nil, err
	}
	if known, _ := has["apiServerURL"].(string); known == "" {
		set["apiServerURL"], set["apiServerCA"] = cluster.server, string(cluster.config.CAData)
	}
	if i.hubURL != "" {
		set["apiServerURL"] = i.hubURL
	}
	set, err = i.over(set)
	if err != nil {
		return nil, err
	}
	if said, ok := set["apiServerURL"].(string); ok {
		return set, i.checkAddress(said)
	}
	return set, nil
}

// checkAddress looks whether members can use an address of the hub.
func (i *initializer) checkAddress(address string) error {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		return fmt.Errorf("members cannot reach the hub at %q: say --hub-url https://HOST:PORT", address)
	}
	if ip := net.ParseIP(parsed.Hostname()); parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		fmt.Fprintf(i.ErrOut, "Members on other machines cannot reach the hub at %s: --hub-url says another address.\n", address)
	}
	return nil
}

func (i *initializer) printCharts(ctx context.Context, cluster *checked) error {
	if i.dryRun {
		return errors.New("--print prints what --dry-run does not make: say one of the two")
	}
	for _, r := range hubCharts() {
		helm, err := i.helm(r)
		if err != nil {
			return err
		}
		given, err := i.valuesOf(cluster, helm)
		if err != nil {
			return err
		}
		manifest, err := helm.render(ctx, given)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(i.Out, manifest); err != nil {
			return err
		}
	}
	return nil
}
