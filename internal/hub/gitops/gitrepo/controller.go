// Package gitrepo keeps the Bundles of GitRepos at the newest commits of their repositories.
//
// It writes Bundles with a GitRepo as their controller, and the status of GitRepos. Its invariants:
// status.commit is a commit only after all its Bundles are written. Only then are other Bundles of
// the GitRepo deleted, by UID. A failure to read a repository changes nothing.
package gitrepo

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
	"github.com/muster-fleet/muster/internal/hub/gitops/clone"
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/hub/gitops/shares"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
	hubcontroller "github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// looks is the maximum number of repositories at work at once, reads the maximum number of commits
	// read at once.
	looks, reads = 20, 4
	// looksShare and readsShare are the parts of them for one workspace.
	looksShare, readsShare = looks / 2, reads - 1
	// lookTimeout and readTimeout bound the time for one repository.
	lookTimeout, readTimeout = 30 * time.Second, 5 * time.Minute
)

// Deps are the dependencies of the controller.
type Deps struct {
	client.Client
	// Live reads Secrets, and Bundles before they are written.
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Dialer   clone.Dialer
	// Apps issues tokens of GitHub Apps.
	Apps *clone.Apps
	// Directory holds the objects of commits while they are read, and Cache between two commits. No
	// cache is needed.
	Directory string
	Cache     *clone.Cache
	// SystemNamespace has the ConfigMap with the known hosts.
	SystemNamespace string
	// Charts fetches charts from elsewhere.
	Charts *chartfetch.Fetcher
}

// kind is the kind of GitRepos.
const kind = "GitRepo"

// Controller reconciles GitRepos.
type Controller struct {
	Deps
	// reading limits the commits read at once.
	reading chan struct{}
	// lookShares and readShares divide the servers and the commits at work among the workspaces.
	lookShares, readShares *shares.Shares
	// polled holds the state of each repository, by the UID of its GitRepo.
	polled kube.Memory[types.UID, *seen]
}

// New returns the controller.
func New(deps Deps) *Controller {
	return &Controller{Deps: deps, reading: make(chan struct{}, reads), lookShares: shares.New(looksShare), readShares: shares.New(readsShare)}
}

// Register adds the controller to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	sameNamespace := anyform.InNamespace(c.Client, kind)
	return ctrl.NewControllerManagedBy(mgr).Named("gitrepo").
		For(anyform.Object(kind)).
		Owns(&fleet.Bundle{}).
		Watches(&fleet.Policy{}, sameNamespace).
		Watches(&fleet.GitRepoRestriction{}, sameNamespace).
		WatchesRawSource(source.Func(c.lookShares.Start)).
		WatchesRawSource(source.Func(c.readShares.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: looks}).
		Complete(hubcontroller.RetryConflicts(c.Recorder, c))
}

// Reconcile looks at a repository if it is time to, reads a new commit, and writes the status.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer c.lookShares.PassOn(request.NamespacedName)
	defer c.readShares.PassOn(request.NamespacedName)
	repo := &fleet.GitRepo{}
	found, err := anyform.Read(ctx, c.Client, request.NamespacedName, repo, reasons.GitRepoInvalid, c.Clock.Now())
	if !repo.DeletionTimestamp.IsZero() {
		c.polled.Forget(repo.UID) // the garbage collector deletes the Bundles
		if c.Cache != nil {
			c.Cache.Drop(string(repo.UID))
		}
	}
	if err != nil || !found {
		return reconcile.Result{}, err
	}
	r := &reconciliation{Controller: c, repo: repo, before: repo.DeepCopy()}
	if err := r.observe(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.act(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if r.waits {
		return reconcile.Result{}, nil // shares enqueue it
	}
	if r.AwaitsGrant(c.Clock.Since(repo.CreationTimestamp.Time)) {
		return reconcile.Result{RequeueAfter: r.Problem.Again}, nil
	}
	return r.report(ctx)
}

// reconciliation is one turn for a GitRepo.
type reconciliation struct {
	*Controller
	repo, before *fleet.GitRepo
	bundles      []fleet.Bundle
	// restrictions are the rules of the GitRepoRestrictions. They hold for the Bundles too; the hub
	// itself checks these only by Policies.
	restrictions policy.Rules
	policies     policy.Rules
	source       *clone.Repository
	seen         *seen
	// waits: the workspace has no free place for this turn.
	waits bool
	ownbundle.Turn
}

// seen is the state of a repository. One turn at a time uses it.
type seen struct {
	generation int64
	head       string
	next       time.Time
	failures   int
	failure    string
	// since is the time of the first failure without a success after it; zero without failures.
	since time.Time
	// credentials are the ones of the last look, read at a time.
	credentials   *clone.Credentials
	authenticated time.Time
	// awaited is an announced commit not shown by the server in time.
	awaited string
	// refused is the problem with the credentials; nil if there is none.
	refused *ownbundle.Problem
	// tried is the commit and generation read last, with the problem, the number of failed attempts,
	// and the time of the next attempt.
	tried    string
	problem  *ownbundle.Problem
	attempts int
	again    time.Time
}

func (c *Controller) seenOf(repo *fleet.GitRepo) *seen {
	first := &seen{}
	if repo.Spec.DisablePolling && repo.Status.Commit != "" { // a new process is no reason to look
		first.head, first.generation = repo.Status.Commit, repo.Status.ObservedGeneration
	}
	return c.polled.Of(repo.UID, first)
}

// knownHosts returns the known hosts of the system namespace; nil if there are none.
func (c *Controller) knownHosts(ctx context.Context) ([]byte, error) {
	configMap := &corev1.ConfigMap{}
	err := c.Get(ctx, types.NamespacedName{Namespace: c.SystemNamespace, Name: KnownHosts}, configMap)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", c.SystemNamespace, KnownHosts, err)
	}
	return []byte(configMap.Data[clone.KnownHosts]), nil
}

// KnownHosts is the ConfigMap of the system namespace with the keys of servers, for all GitRepos.
const KnownHosts = "known-hosts"
