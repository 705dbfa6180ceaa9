// Package gitops is the program mode for reading Git and chart repositories. It runs apart from the
// hub, so a hostile repository cannot hurt registration.
package gitops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/hub/gitops/clone"
	"github.com/muster-fleet/muster/internal/hub/gitops/gitrepo"
	"github.com/muster-fleet/muster/internal/hub/gitops/helmop"
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/hub/gitops/webhook"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
	"github.com/muster-fleet/muster/internal/hub/runtime/eventlimit"
	"github.com/muster-fleet/muster/internal/logging"
	"github.com/muster-fleet/muster/internal/process"
	"github.com/muster-fleet/muster/internal/version"
)

// lease is the Lease of the active replica.
const lease = "muster-gitops"

// Options holds the settings of the program.
type Options struct {
	// Namespace is the hub's system namespace.
	Namespace   string
	LeaderElect bool
	// MetricsAddress and ProbeAddress are the addresses of metrics and probes; "0" turns each off.
	MetricsAddress, ProbeAddress string
	// Directory holds the objects of commits, also between two commits of a repository. The program
	// empties its directory commits there at its start. Without it, objects are in the directory for
	// temporary files while a commit is read.
	Directory string
	// WebhookAddress is the address of the webhook for pushes; "0" turns it off.
	WebhookAddress string
	// AllowLoopback permits repositories on loopback addresses.
	AllowLoopback bool
}

// NewCommand returns the command muster-hub gitops; configure reaches the hub cluster, namespace is
// its system namespace.
func NewCommand(configure func() (*rest.Config, error), namespace *string) *cobra.Command {
	var options Options
	var debug bool
	command := &cobra.Command{
		Use:   "gitops",
		Short: "Keep the Bundles of GitRepos and HelmOps at the newest commits and versions",
		Long: `Keep the Bundles of GitRepos at the newest commits of their repositories, and the Bundles of
HelmOps at the newest versions of their charts. The program reads repositories by https, http and
ssh. It runs no program and checks no files out.

Its account reads GitRepos, HelmOps, Policies and the objects that these name, and writes Bundles.`,
		Example: `  muster-hub gitops --kubeconfig gitops.kubeconfig --namespace cattle-fleet-system`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.Namespace = *namespace; options.Namespace == "" {
				return errors.New("--namespace or env NAMESPACE is required: the hub's system namespace")
			}
			process.SaveMemory()
			log := logging.New(debug)
			ctrl.SetLogger(logging.Libraries(log))
			config, err := configure()
			if err != nil {
				return err
			}
			log.Info("GitOps started", "version", version.Version, "hub", config.Host)
			return Run(logr.NewContext(command.Context(), log), config, options)
		},
	}
	set := command.Flags()
	set.BoolVar(&options.LeaderElect, "leader-elect", true, "elect a leader among the replicas, with a Lease in the system namespace")
	set.StringVar(&options.MetricsAddress, "metrics-bind-address", ":8080", "address of /metrics; 0 turns it off")
	set.StringVar(&options.ProbeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz; 0 turns them off")
	set.StringVar(&options.WebhookAddress, "webhook-bind-address", "0", "address for the webhooks of Git servers; 0 turns it off")
	set.StringVar(&options.Directory, "directory", "",
		"directory for the objects of commits, for this program only (default: a temporary directory, lost at the end)")
	set.BoolVar(&options.AllowLoopback, "allow-loopback", false,
		"read repositories on loopback addresses of this machine")
	set.BoolVar(&debug, "debug", false, "write more log messages")
	return command
}

// Run keeps the Bundles of GitRepos until the context ends.
func Run(ctx context.Context, config *rest.Config, options Options) error {
	directory, err := emptied(options.Directory)
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server's own priority and fairness decides
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, fleet.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	ofUsers, err := labels.NewRequirement(fleet.LabelAgent, selection.DoesNotExist, nil)
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&fleet.Bundle{}:           {Label: labels.NewSelector().Add(*ofUsers), Transform: ownbundle.Slim},
			anyform.Object("GitRepo"): {Transform: anyform.Slim},
			anyform.Object("HelmOp"):  {Transform: anyform.Slim},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{options.Namespace: {
				FieldSelector: fields.OneTermEqualSelector("metadata.name", gitrepo.KnownHosts)}}},
		}, DefaultTransform: cache.TransformStripManagedFields()},
		Client:                  client.Options{Cache: &client.CacheOptions{Unstructured: true}}, // see package anyform
		Metrics:                 metricsserver.Options{BindAddress: process.BindAddress(options.MetricsAddress)},
		HealthProbeBindAddress:  process.BindAddress(options.ProbeAddress),
		LeaderElection:          options.LeaderElect,
		LeaderElectionID:        lease,
		LeaderElectionNamespace: options.Namespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return fmt.Errorf("connecting to the hub cluster at %s: %w", config.Host, err)
	}
	dialer := clone.Dialer{AllowLoopback: options.AllowLoopback}
	dialer.Install()
	real := clock.RealClock{}
	recorder := eventlimit.New(mgr.GetEventRecorder("muster-gitops"), real)
	charts := chartfetch.NewFetcher(&http.Client{Transport: dialer.Transport()})
	repos := gitrepo.New(gitrepo.Deps{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: real, Recorder: recorder, Dialer: dialer,
		Apps: clone.NewApps(dialer.Transport(), real), Directory: directory, Cache: cacheIn(directory),
		SystemNamespace: options.Namespace, Charts: charts})
	ops := helmop.New(helmop.Deps{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: real, Recorder: recorder, Charts: charts})
	err = errors.Join(repos.Register(mgr), ops.Register(mgr),
		mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", synced(mgr)))
	if err != nil {
		return err
	}
	if err := serveWebhook(ctx, mgr, options, real); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// serveWebhook adds the server of the webhook to the manager.
func serveWebhook(ctx context.Context, mgr ctrl.Manager, options Options, real clock.PassiveClock) error {
	address := process.BindAddress(options.WebhookAddress)
	if address == "" || address == "0" {
		return nil
	}
	if err := webhook.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return fmt.Errorf("indexing GitRepos by repository: %w", err)
	}
	handler := webhook.New(webhook.Handler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: real,
		Log: mgr.GetLogger().WithName("webhook"), SystemNamespace: options.Namespace})
	return mgr.Add(handler.Server(address))
}

// cacheIn returns a cache of commits in the program's own directory, with a limit; nil without such
// a directory.
func cacheIn(directory string) *clone.Cache {
	if directory == "" {
		return nil
	}
	return &clone.Cache{Directory: directory}
}

// emptied returns the directory for commits, without the files of a killed process.
func emptied(directory string) (string, error) {
	if directory == "" {
		return "", nil
	}
	commits := filepath.Join(directory, "commits")
	if err := errors.Join(os.RemoveAll(commits), os.MkdirAll(commits, 0o700)); err != nil {
		return "", fmt.Errorf("emptying the directory for commits: %w", err)
	}
	return commits, nil
}

// synced reports whether the caches are filled.
func synced(mgr ctrl.Manager) healthz.Checker {
	return func(request *http.Request) error {
		if !mgr.GetCache().WaitForCacheSync(request.Context()) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}
