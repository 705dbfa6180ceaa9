// Package server assembles the hub: one manager, the caches, and the one list of controllers.
//
// Its invariant: the hub caches whole objects only of the kinds it decides on, and metadata of the
// other kinds.
package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	inventoryv1alpha1 "github.com/muster-fleet/muster/api/inventory/v1alpha1"
	musterv1alpha1 "github.com/muster-fleet/muster/api/muster/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentbundle"
	"github.com/muster-fleet/muster/internal/hub/bundles/contentaccess"
	"github.com/muster-fleet/muster/internal/hub/credentials/longlived"
	"github.com/muster-fleet/muster/internal/hub/credentials/rejoin"
	"github.com/muster-fleet/muster/internal/hub/joining/admission"
	"github.com/muster-fleet/muster/internal/hub/joining/clusterapi"
	"github.com/muster-fleet/muster/internal/hub/joining/expression"
	"github.com/muster-fleet/muster/internal/hub/joining/importer"
	"github.com/muster-fleet/muster/internal/hub/joining/registration"
	"github.com/muster-fleet/muster/internal/hub/joining/selfimport"
	"github.com/muster-fleet/muster/internal/hub/joining/token"
	"github.com/muster-fleet/muster/internal/hub/members/audit"
	"github.com/muster-fleet/muster/internal/hub/members/cluster"
	"github.com/muster-fleet/muster/internal/hub/members/inventory"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membercluster"
	"github.com/muster-fleet/muster/internal/hub/members/stray"
	placer "github.com/muster-fleet/muster/internal/hub/placement"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/decisions"
	"github.com/muster-fleet/muster/internal/hub/runtime/eventlimit"
	"github.com/muster-fleet/muster/internal/hub/runtime/identity"
	"github.com/muster-fleet/muster/internal/hub/runtime/metrics"
	"github.com/muster-fleet/muster/internal/hub/runtime/notify"
	"github.com/muster-fleet/muster/internal/hub/runtime/pacing"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/hub/runtime/unsupported"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/process"
	"github.com/muster-fleet/muster/internal/servertime"
)

// Options holds the settings of a hub process.
type Options struct {
	// Namespace is the hub's system namespace.
	Namespace string
	// LeaderElect lets one of several replicas work.
	LeaderElect bool
	Election    Election
	// Holder is this hub's name as a leader, unique among running hubs; empty for a generated one.
	Holder string
	// MetricsAddress and ProbeAddress are the addresses of metrics and probes; "0" turns each off.
	MetricsAddress, ProbeAddress string
	// StateDir is a directory for notes about risky steps, read by the next hub in the same Pod; empty
	// if there is none.
	StateDir string
	// WithoutGitOps is set if no program reads repositories.
	WithoutGitOps bool
	// Clock is the machine's clock; the real one if nil.
	Clock clock.Clock
}

// NewScheme returns the kinds read and written by the hub.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, fleet.AddToScheme, clusterv1beta1.AddToScheme, placement.AddToScheme, inventoryv1alpha1.AddToScheme,
		musterv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two types with one name: a bug in this program
		}
	}
	return scheme
}

// Run serves the configured cluster until the context ends. It logs to the context's logger.
func Run(ctx context.Context, restConfig *rest.Config, options Options) error {
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS = -1 // the API server's own priority and fairness decides
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	server := servertime.New(options.Clock)
	restConfig.Wrap(server.Wrap)
	keeper, err := identity.New(restConfig, options.Namespace, logr.FromContextOrDiscard(ctx).WithName("identity"))
	if err != nil {
		return err
	}
	return follow(ctx, keeper, func(ctx context.Context) error { return work(ctx, restConfig, options, server, keeper) },
		func(ctx context.Context) error { return standStill(ctx, restConfig, options, keeper.Stopped()) })
}

// work runs the controllers until the context ends.
func work(ctx context.Context, restConfig *rest.Config, options Options, server *servertime.Clock, keeper *identity.Keeper) error {
	kinds := servedkinds.New(options.Clock, logr.FromContextOrDiscard(ctx).WithName("kinds"), NewScheme())
	managerOptions, err := managerOptions(restConfig, options, kinds)
	if err != nil {
		return err
	}
	pacer := pacing.New(logr.FromContextOrDiscard(ctx).WithName("pacing"))
	managerOptions.NewClient = pacer.NewClient
	mgr, err := ctrl.NewManager(restConfig, managerOptions)
	if err != nil {
		return fmt.Errorf("connecting to the hub cluster at %s: %w", restConfig.Host, err)
	}
	if err := requireCRDs(mgr.GetRESTMapper()); err != nil {
		return err
	}
	if err := checkRoles(ctx, mgr.GetAPIReader()); err != nil {
		return err
	}
	if err := keeper.Create(ctx); err != nil {
		return err
	}
	if err := errors.Join(pacer.Watch(ctx, mgr.GetCache()), mgr.Add(serve(pacer))); err != nil {
		return err
	}
	err = setUp(ctx, mgr, options, server, kinds, keeper)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the hub was asked to stop while it started
	}
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// managerOptions returns the manager's cache, its addresses and its leader election.
func managerOptions(restConfig *rest.Config, options Options, kinds *servedkinds.Kinds) (ctrl.Options, error) {
	o := ctrl.Options{
		Scheme:                        NewScheme(),
		Cache:                         cacheOptions(options.Namespace, kinds),
		Metrics:                       metricsserver.Options{BindAddress: process.BindAddress(options.MetricsAddress)},
		HealthProbeBindAddress:        process.BindAddress(options.ProbeAddress),
		LeaderElection:                options.LeaderElect,
		LeaderElectionID:              naming.HubLease,
		LeaderElectionNamespace:       options.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &options.Election.LeaseDuration,
		RenewDeadline:                 &options.Election.RenewDeadline,
		RetryPeriod:                   &options.Election.RetryPeriod,
		// The check finds two controllers with one name in a program. Here it would forbid a second hub
		// after the end of the first.
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}
	if !options.LeaderElect || options.Holder == "" {
		return o, nil
	}
	var err error
	o.LeaderElectionResourceLockInterface, err = lock(restConfig, options.Namespace, options.Holder, options.Election.RenewDeadline)
	return o, err
}

// newDeps returns the dependencies of the controllers.
func newDeps(ctx context.Context, mgr manager.Manager, options Options, server *servertime.Clock,
	kinds *servedkinds.Kinds, keeper *identity.Keeper) (controller.Deps, error) {
	deps := controller.Deps{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: server, Kinds: kinds,
		SystemNamespace: options.Namespace, Joins: controller.NewJoins(), Offers: controller.NewOffers(), Identity: keeper}
	deps.Recorder = eventlimit.New(mgr.GetEventRecorder("muster-hub"), options.Clock)
	deps.Config = settings.New(deps.Client, deps.Recorder, options.Namespace)
	deps.Config.Clock = server
	if err := deps.Config.Load(ctx, deps.Live); err != nil {
		return deps, err
	}
	deps.Notify = notify.New(notify.Deps{Client: deps.Client, Live: deps.Live, Clock: options.Clock, Recorder: deps.Recorder,
		Config: deps.Config, Namespace: options.Namespace})
	deps.Liveness = liveness.New(options.Clock, server, logr.FromContextOrDiscard(ctx).WithName("liveness"))
	var err error
	deps.Workspaces, err = controller.NewWorkspaces(ctx, mgr)
	return deps, err
}

// setUp adds all controllers, caches and servers.
func setUp(ctx context.Context, mgr manager.Manager, options Options, server *servertime.Clock, kinds *servedkinds.Kinds,
	keeper *identity.Keeper) error {
	namespace := options.Namespace
	deps, err := newDeps(ctx, mgr, options, server, kinds, keeper)
	if err != nil {
		return err
	}
	readers := contentaccess.New(deps)
	deps.GrantContents, deps.WithdrawContents, deps.ReadmitContents = readers.Grant, readers.Withdraw, readers.Readmit
	address := func(c *fleet.Cluster) *clusterv1beta1.HubAddress { return importer.Hub(c, deps.Config.Current().Hub()) }
	moves, again, forever := &lifecycle.MoveLimiter{}, rejoin.New(deps), longlived.New(deps)
	agents, shown := agentbundle.New(deps), decisions.New(deps, mgr)
	expressions, census := expression.NewCache(), metrics.Census{Reader: mgr.GetCache(), Sources: !options.WithoutGitOps}
	policies := &admission.Checker{Client: deps.Client, Live: deps.Live, Clock: deps.Clock, Recorder: deps.Recorder,
		Log: logr.FromContextOrDiscard(ctx).WithName("admission"), Namespace: namespace}
	entries, err := addAudit(ctx, mgr, deps, policies)
	if err != nil {
		return err
	}
	for _, register := range []func() error{
		func() error { return addProbes(mgr) },
		func() error { return kinds.Register(ctx, mgr) },
		func() error { return controller.Fill(ctx, mgr.GetCache(), decidedOn()...) },
		func() error { return mgr.Add(manager.RunnableFunc(deps.Liveness.Start)) },
		func() error { return mgr.Add(serve(deps.Liveness, census, deps.Notify)) },
		func() error { return addBeats(ctx, mgr, deps.Liveness) },
		func() error { return errors.Join(mgr.Add(deps.Notify), mgr.Add(manager.RunnableFunc(policies.Start))) },
		func() error { return mgr.Add(manager.RunnableFunc(bootstrap(deps.Client, namespace))) },
		func() error { return deps.Config.Register(mgr) },
		func() error { return token.New(deps, expressions, forever).Register(ctx, mgr) },
		func() error {
			return registration.New(registration.Deps{
				Deps: deps, Hub: address, Reconnect: again.Token, Audit: entries, Expressions: expressions, Lasting: forever, Policies: policies,
				OwnCAs: ownCAs(mgr.GetConfig()),
			}).Register(ctx, mgr)
		},
		func() error { return cluster.New(deps, moves, address, again.Token, entries).Register(mgr) },
		func() error { return addKubeconfigs(ctx, mgr, deps) },
		func() error { return membercluster.New(deps, moves, entries).Register(ctx, mgr) },
		func() error { return stray.New(deps).Register(mgr) },
		func() error { return addPlacement(ctx, mgr, deps, policies, shown) },
		func() error { return addBundles(ctx, mgr, deps, agents, shown, options.StateDir) },
		func() error {
			return errors.Join(readers.Register(mgr), unsupported.Register(mgr, deps.Clock, options.WithoutGitOps))
		},
		func() error { return addGitOps(ctx, mgr, deps, options) },
		func() error { return addInventory(ctx, mgr, deps) },
		func() error { return selfimport.New(selfimport.Deps{Deps: deps, Hub: mgr.GetConfig()}).Register(mgr) },
		func() error { return clusterapi.New(deps).Register(ctx, mgr) },
		func() error { return mgr.Add(manager.RunnableFunc(keeper.TakeOver)) },
	} {
		if err := register(); err != nil {
			return err
		}
	}
	return nil
}

// ownCAs returns the digests of the hub's own CA certificates for its API server; none if it trusts
// the system's.
func ownCAs(restConfig *rest.Config) []string {
	restConfig = rest.CopyConfig(restConfig)
	if err := rest.LoadTLSFiles(restConfig); err != nil {
		return nil // no connection is possible then
	}
	return credential.CADigests(restConfig.CAData)
}

// addPlacement adds the controller of placements and its dependencies. The controller reads any
// kind, and therefore has clients of its own.
func addPlacement(ctx context.Context, mgr manager.Manager, deps controller.Deps, policies *admission.Checker,
	shown *decisions.Publisher) error {
	reader, err := dynamic.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client for any kind: %w", err)
	}
	known, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a client for discovery: %w", err)
	}
	placements := placer.New(placer.Deps{Deps: deps, Dynamic: reader, Discovery: known, Policies: policies, Decisions: shown})
	if err := mgr.Add(serve(placements)); err != nil {
		return err
	}
	return placements.Register(ctx, mgr)
}

// addAudit adds the deletion of old AuditEntries and returns their writer, nil if the kind is not
// served.
func addAudit(ctx context.Context, mgr manager.Manager, deps controller.Deps, policies *admission.Checker) (*audit.Writer, error) {
	if served, err := serves(ctx, mgr, musterv1alpha1.GroupVersion.WithKind("AuditEntry"), "AuditEntries"); err != nil || !served {
		return nil, err
	}
	return &audit.Writer{Client: deps.Client, Clock: deps.Clock, Config: deps.Config, Policies: policies}, audit.New(deps).Register(mgr)
}

// addInventory adds the inventory if the API server serves its kind.
func addInventory(ctx context.Context, mgr manager.Manager, deps controller.Deps) error {
	if served, err := serves(ctx, mgr, inventoryv1alpha1.GroupVersion.WithKind("ClusterProfile"), "the inventory"); err != nil || !served {
		return err
	}
	return inventory.New(deps).Register(ctx, mgr)
}

// addProbes serves /healthz while the process lives and /readyz once its caches are filled.
func addProbes(mgr manager.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("caches", func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	})
}
