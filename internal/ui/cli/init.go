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

// hubDeployment is the Deployment of the chart fleet.
const hubDeployment = "fleet-controller"

// initializer is the command muster init.
type initializer struct {
	genericiooptions.IOStreams
	*access
	chartValues
	hubURL        string
	dryRun, print bool
	timeout       time.Duration
	// takesOver allows objects of another hub, and replaces allows releases of its charts.
	takesOver, replaces bool
}

func newInit(streams genericiooptions.IOStreams, h *access) *cobra.Command {
	i := &initializer{IOStreams: streams, access: h}
	command := &cobra.Command{
		Use:   "init",
		Short: "Install or upgrade the hub on a cluster",
		Long: `Install the hub on the cluster of the current context, or upgrade it, and wait until the
hub is running. The command brings the charts fleet-crd and fleet along. They become Helm
releases in namespace ` + naming.SystemNamespace + `.

Values of an earlier run stay. Running init again changes only the version.

Members reach the hub by the address and the CA in the kubeconfig. To use others, set
--hub-url, or the values apiServerURL and apiServerCA. For a copy of its
objects, see "muster backup --help"; for two hubs of one fleet, "muster hub --help".`,
		Example: `  # Install the hub
  muster init --context hub

  # Install the hub with another address and two replicas
  muster init --context hub --hub-url https://hub.example.com:6443 --set controller.replicas=2

  # Check first, without changes
  muster init --context hub --dry-run

  # Write the manifests for GitOps
  muster init --context hub --print > hub.yaml`,
		Args: takesNone,
		RunE: func(command *cobra.Command, _ []string) error {
			return interruptible(command.Context(), i.run(command.Context()))
		},
	}
	i.addFlags(command, "fleet")
	flags := command.Flags()
	flags.StringVar(&i.hubURL, "hub-url", "", "Address of the hub's API server for members")
	flags.BoolVar(&i.dryRun, "dry-run", false, "Check whether the hub can be installed, and print the steps only")
	flags.BoolVar(&i.print, "print", false, "Print the manifests of both charts only")
	flags.DurationVar(&i.timeout, "timeout", 5*time.Minute, "Time to wait until the hub is running; 0 to return at once")
	return command
}

// hubCharts returns the charts of a hub in the order of installation.
func hubCharts() []chartRelease {
	return []chartRelease{{"fleet-crd", naming.SystemNamespace}, {"fleet", naming.SystemNamespace}}
}

func (i *initializer) run(ctx context.Context) error {
	cluster, err := i.checked()
	if err != nil {
		return err
	}
	p := i.newProgress(i.Out)
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
	if err := inTime(ctx, cluster.awaitHub(ctx, &p)); err != nil {
		return err
	}
	p.line("The hub is running. To register a cluster: muster join --context CLUSTER --hub-context %s", i.contextName())
	return p.err
}

// mayInstall returns the obstacles to an installation: missing permissions, incompatible CRDs,
// or a release of another chart.
func (i *initializer) mayInstall(ctx context.Context, cluster *checked) error {
	err := require(ctx, append(cluster.reachable(), cluster.may("install the hub",
		right{"create", "", "namespaces", ""}, right{"create", "", "secrets", naming.SystemNamespace},
		right{"create", "apiextensions.k8s.io", "customresourcedefinitions", ""},
		right{"create", "rbac.authorization.k8s.io", "clusterrolebindings", ""},
		right{"escalate", "rbac.authorization.k8s.io", "clusterroles", ""})))
	if err != nil {
		return err
	}
	// report all obstacles at once
	for _, c := range []check{cluster.definitionsFit(), cluster.rolesFit(), i.releasesFit(), i.objectsFit(cluster)} {
		err = errors.Join(err, require(ctx, []check{c}))
	}
	return err
}

// releasesFit checks that the hub's releases belong to Muster's charts.
func (i *initializer) releasesFit() check {
	return check{"releases", false, func(context.Context) (string, error) {
		for _, r := range hubCharts() {
			helm, err := i.helm(r)
			if err != nil {
				return "", err
			}
			helm.replaces = i.replaces
			if _, _, err := helm.plan(); err != nil {
				return "", err // both releases have the same owner
			}
		}
		return "the releases can be installed", nil
	}}
}

// install installs one chart of the hub. With --dry-run it prints the step only.
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

// valuesOf returns the user's values for a chart. A hub without an address gets the address in
// the kubeconfig.
func (i *initializer) valuesOf(cluster *checked, helm *helmOn) (map[string]any, error) {
	if helm.chart != "fleet" {
		return map[string]any{}, nil
	}
	set := map[string]any{}
	earlier, err := helm.values()
	if err != nil {
		return nil, err
	}
	if known, _ := earlier["apiServerURL"].(string); known == "" {
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

// checkAddress checks whether members can use an address of the hub.
func (i *initializer) checkAddress(address string) error {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		return fmt.Errorf("members cannot reach the hub at %q: use --hub-url https://HOST:PORT", address)
	}
	if ip := net.ParseIP(parsed.Hostname()); parsed.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		fmt.Fprintf(i.ErrOut, "Members on other machines cannot reach the hub at %s: set another address with --hub-url.\n", address)
	}
	return nil
}

func (i *initializer) printCharts(ctx context.Context, cluster *checked) error {
	if i.dryRun {
		return errors.New("--print and --dry-run exclude each other: use one of the two")
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
