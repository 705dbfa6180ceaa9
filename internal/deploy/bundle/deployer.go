// Package bundle brings the Helm releases on a member in line with the BundleDeployments of its
// member namespace, and reports their state.
//
// It writes the status of BundleDeployments on the hub, and releases on the member.
//
// Its invariant: the deployer changes a release only if it differs from its BundleDeployment. It
// removes a release only if its BundleDeployment was deleted from a member namespace, and the
// namespace stays. A failed list, another member namespace, or one being deleted leaves everything
// as it is.
package bundle

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/drift"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/deploy/render"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hubclient"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/retry"
)

const (
	// workers is the number of deployments in progress at a time. A deployment occupies a worker while
	// it waits for a hook.
	workers = 16
	// debounce is the time to collect events before a deployment is reconciled.
	debounce = 300 * time.Millisecond
	// busyRetry is the pause before the next check for the end of a user's Helm command.
	busyRetry = 2 * time.Second
	// noteEvery is the least time between two notes of compared objects of one release.
	noteEvery = time.Minute
	// ReportAfter is the delay before a running operation, or the first list of a kind, is reported.
	ReportAfter = 3 * time.Second
)

// Deployer deploys for one member.
type Deployer struct {
	// Cluster is the member, Hub the member namespace.
	Cluster *release.Cluster
	Hub     *hubclient.Member
	// Member is the UID of the member's report. Lost are the UIDs of its reports from before a restore
	// of the hub.
	Member string
	Lost   []string
	Log    logr.Logger
	Clock  clock.WithTicker
	// OnlyAgent limits the deployer to the agent's own release: a MemberCluster gets no other one.
	OnlyAgent bool
	// Idle receives true if no BundleDeployment is wanted and no release is left. A healthy release of
	// the agent itself does not count: AgentIdle receives the generation of its BundleDeployment
	// first.
	Idle      func(bool)
	AgentIdle func(map[string]int64)
	// Pauses defaults to the times of production.
	Pauses *Pauses
	// Renderer renders charts.
	Renderer *render.Renderer
	// Attempts report the deployments in progress.
	Attempts *Attempts
	// Blocked receives the obstacles to removing releases at each change, and the releases unknown to
	// a restored hub.
	Blocked func(why protocol.Blocked, kept []applied.Kept)
	// Seen receives each event of the watch of BundleDeployments, before it takes effect. May be nil.
	Seen func(protocol.Event)

	queue    workqueue.TypedDelayingInterface[string]
	store    *store
	detector *drift.Detector
	charts   *chartfetch.Fetcher

	mu         sync.Mutex
	deliveries map[string]*delivery
	owners     map[applied.Query]map[string]bool
	waiting    map[string]bool
	busy       int
	problems   problems
	wakeups    wakeups
}

// Run deploys until ctx ends and Helm has finished.
func (d *Deployer) Run(ctx context.Context) error {
	ctx = logr.NewContext(ctx, d.Log)
	d.queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: d.Clock})
	d.deliveries, d.owners, d.waiting = map[string]*delivery{}, map[applied.Query]map[string]bool{}, map[string]bool{}
	d.store = newStore(d.queue.Add, d.reported)
	d.detector, d.charts = drift.New(d.Cluster, d.changed, d.listed), chartfetch.NewFetcher(nil)
	d.wakeups.init()
	if err := d.adopt(ctx); err != nil {
		return err
	}
	deployments, err := d.Hub.Deployments()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() { d.follow(ctx, deployments) })
	working.Go(func() { d.followCluster(ctx) })
	working.Go(func() { _ = d.detector.Run(ctx) }) // always nil
	select {
	case <-ctx.Done():
	case <-d.store.synced:
		// The missing BundleDeployments are known from here on.
		d.mu.Lock()
		for name := range d.deliveries {
			d.queue.Add(name)
		}
		d.mu.Unlock()
		for range workers {
			working.Go(func() { d.work(ctx) })
		}
	}
	d.reportIdle()
	<-ctx.Done()
	cancel()
	d.queue.ShutDown()
	working.Wait()
	return nil
}

// follow watches the BundleDeployments until ctx ends.
func (d *Deployer) follow(ctx context.Context, deployments *hubclient.Deployments) {
	if d.Seen == nil {
		kubeclient.Follow(ctx, deployments, "", d.store, d.watchEnded)
		return
	}
	kubeclient.Follow(ctx, deployments, "", protocol.Telling{ReflectorStore: d.store, Tell: d.Seen}, d.watchEnded)
	d.Seen(protocol.Event{Type: protocol.EventEnded})
}

// CheckLock takes and releases the lock of the deployer. It does not return if the lock is never
// released.
func (d *Deployer) CheckLock() {
	d.mu.Lock()
	defer d.mu.Unlock()
}

// adopt lists the releases of earlier deployers. Nothing is deployed before the list succeeds.
func (d *Deployer) adopt(ctx context.Context) error {
	for backoff := retry.Unreachable(); ; {
		found, err := d.Cluster.List(ctx)
		if err == nil {
			if d.OnlyAgent {
				found = ofAgent(found)
			}
			if d.moveHistories(ctx, found) {
				continue
			}
			for secret, is := range found.Unreadable {
				d.Log.Info("Failed to read a release", "reason", is.Why.Error())
				d.setProblem(problemOf(secret), reasons.RemovalBlocked, is.Why.Error())
			}
			for name, releases := range found.Releases {
				d.deliveries[name] = newDelivery(releases...)
			}
			return nil
		}
		d.Log.Info("Failed to find the releases", "reason", err.Error())
		if err := retry.Wait(ctx, d.Clock, backoff.Step()); err != nil {
			return err
		}
	}
}

// moveHistories moves histories from the agent's namespace, where earlier versions kept them, into
// the namespaces of the releases. It reports whether it moved any. If the move of a history fails,
// the history stays until its release is deployed again or removed.
func (d *Deployer) moveHistories(ctx context.Context, found release.Found) (moved bool) {
	for _, releases := range found.Releases {
		s := releases[0]
		if s.History == s.Namespace || s.Agent {
			continue
		}
		if err := d.Cluster.Move(ctx, s, s.ID(), release.Owner{Bundle: s.Bundle, Workspace: s.Workspace}); err != nil {
			d.Log.Info("Failed to move the history of a release to its namespace", "release", s.String(), "reason", err.Error())
			continue
		}
		d.Log.Info("History of a release moved to its namespace", "release", s.String(), "from", s.History)
		moved = true
	}
	return moved
}

// reported enqueues the dependents of a deployment.
func (d *Deployer) reported(string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.waiting {
		d.queue.Add(name)
	}
}

func (d *Deployer) work(ctx context.Context) {
	for {
		name, stopped := d.queue.Get()
		if stopped {
			return
		}
		if ctx.Err() == nil {
			d.begin()
			d.reconcileName(ctx, name)
			d.end()
		}
		d.queue.Done(name)
		d.reportIdle()
	}
}

// reconcile observes, decides, acts and reports for one deployment.
func (d *Deployer) reconcile(ctx context.Context, name string, delivery *delivery) {
	if d.store.get(name) == nil && delivery.release == nil {
		d.forget(name)
		return
	}
	d.setAgentIdle(delivery, 0)
	s := d.observe(ctx, name, delivery)
	decision := decide(s.observed, d.Clock.Now())
	d.logState(name, delivery, s, decision)
	if decision.State != Kept {
		d.clearKept(name)
	}
	err := d.act(ctx, name, delivery, s, decision)
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, release.ErrBusy) {
		d.Log.Info("Deployment waits", "deployment", name, "reason", err.Error())
		d.queue.AddAfter(name, busyRetry) // the end of a command sends no event
		return
	}
	if err != nil {
		d.fail(ctx, name, delivery, s, err)
		return
	}
	switch decision.State {
	case Confirming, Removing, Moving, Deploying, Correcting:
		if decision.State == Confirming && !decision.Wake.IsZero() {
			d.queue.AddAfter(name, decision.Wake.Sub(d.Clock.Now()))
			return
		}
		delivery.failure, delivery.backoff = failure{}, retry.Failed()
		d.queue.Add(name)
	case Gone, Kept, Held, Unsupported, Waiting, Failed, Watching:
		if d.report(ctx, name, delivery, s, decision) && decision.State == Watching && s.agentIsWell() {
			d.setAgentIdle(delivery, s.generation)
		}
		if wake := kube.Earlier(decision.Wake, s.objects.LookAgain); !wake.IsZero() {
			d.queue.AddAfter(name, wake.Sub(d.Clock.Now()))
		}
	}
}

// setAgentIdle sets the generation with a healthy release of the agent itself; 0 if there is none.
func (d *Deployer) setAgentIdle(delivery *delivery, generation int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delivery.agentIdle = generation
}

// logState logs a change of state, and marks a deployment waiting for others.
func (d *Deployer) logState(name string, delivery *delivery, s observation, decision decision) {
	d.mu.Lock()
	if decision.State == Waiting {
		d.waiting[name] = true
	} else {
		delete(d.waiting, name)
	}
	d.mu.Unlock()
	if delivery.state != decision.State {
		d.Log.Info("Deployment changed state", "deployment", name, "from", delivery.state, "to", decision.State, "reason", decision.Reason)
		delivery.state = decision.State
	}
	if s.unwatched == "" {
		delivery.unwatched = time.Time{}
	}
}

// fail stores the error of an attempt and enqueues the deployment. The next reconciliation reports
// the error.
func (d *Deployer) fail(ctx context.Context, name string, delivery *delivery, s observation, err error) {
	if delivery.failure.of != s.generation || errors.Is(err, release.ErrHookRuns) { // the attempt itself has waited
		delivery.backoff = retry.Failed()
	}
	d.wakeups.failed(name, release.ID{Namespace: s.namespace, Name: s.name}, err)
	reason, message := d.explain(err)
	delivery.failure = failure{of: s.generation, removing: !s.wanted, reason: reason, message: message,
		retryAt: d.Clock.Now().Add(delivery.backoff.Step())}
	if terminating := (*release.TerminatingNamespace)(nil); errors.As(err, &terminating) {
		d.awaitNamespace(ctx, name, terminating.Name, delivery.failure.retryAt)
	}
	d.Log.Info("Deployment failed", "deployment", name, "reason", message, "retry", delivery.failure.retryAt)
	d.queue.Add(name)
}
