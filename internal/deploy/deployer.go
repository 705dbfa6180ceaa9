// Package deploy is the deployer: it makes the Helm releases on a member what the BundleDeployments of its member namespace say, and reports
// how they are.
//
// It is a program of its own, muster-deployer, which the agent starts when the first BundleDeployment arrives, so that neither the memory of
// Helm nor a runaway chart is the heartbeat's. It writes the status of BundleDeployments on the hub, and releases downstream.
//
// Its invariant: a release is touched only if it is not what is wanted, and removed only if its BundleDeployment was taken away from a member
// namespace that stays; whatever else keeps a BundleDeployment from being seen, a list that failed, another member namespace, one that is
// being deleted, leaves everything as it is.
package deploy

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/agent/client"
	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/agent/remote"
	"github.com/muster-fleet/muster/internal/agent/retry"
	"github.com/muster-fleet/muster/internal/deploy/chart"
	"github.com/muster-fleet/muster/internal/deploy/live"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

const (
	// workers is how many deployments are worked on at a time; one that waits for a hook holds one.
	workers = 16
	// settle lets what happens together be reported together.
	settle = 300 * time.Millisecond
	// busyRetry is when to look again whether the user's Helm has ended.
	busyRetry = 2 * time.Second
	// breath is how long after a deployment the memory that it took is given back.
	breath = 10 * time.Second
	// trimming is in the queue, where names of deployments are, for giving memory back.
	trimming = ""
	// patience is how long a deployment goes on, or a kind is listed, before that is reported.
	patience = 3 * time.Second
)

// Deployer deploys for one member.
type Deployer struct {
	// Cluster is downstream, Hub the member namespace.
	Cluster *release.Cluster
	Hub     *remote.Member
	// Member is the UID of the member's report.
	Member string
	Log    logr.Logger
	Clock  clock.WithTicker
	// Idle is told whether nothing is wanted and nothing is left. The agent's own release is left alone while it is well; Rested is told
	// before, in which generation of its BundleDeployment.
	Idle   func(bool)
	Rested func(map[string]int64)
	// Pauses are those of production if nil.
	Pauses *Pauses
	// Attempts are told what is being worked on. They may be nil.
	Attempts *Attempts
	// Blocked is told what keeps releases from being removed, when that changes. It may be nil.
	Blocked func(deployer.Blocked)

	queue   workqueue.TypedDelayingInterface[string]
	store   *store
	watcher *live.Watcher
	charts  *chart.Fetcher

	mu         sync.Mutex
	deliveries map[string]*delivery
	owners     map[live.Key]map[string]bool
	waiting    map[string]bool
	busy       int
	problems   problems
	awaited    awaited
}

// Run deploys until ctx ends, which leaves what is under way behind.
func (d *Deployer) Run(ctx context.Context) error {
	ctx = logr.NewContext(ctx, d.Log)
	d.queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[string]{Clock: d.Clock})
	d.deliveries, d.owners, d.waiting = map[string]*delivery{}, map[live.Key]map[string]bool{}, map[string]bool{}
	d.store = newStore(d.queue.Add, d.reported)
	d.watcher, d.charts = live.NewWatcher(d.Cluster, d.changed), chart.NewFetcher(nil)
	d.awaited.init()
	if err := d.adopt(ctx); err != nil {
		return err
	}
	deployments, err := d.Hub.Deployments()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() { client.Follow(ctx, deployments, "", d.store, d.following) })
	working.Go(func() { d.followCluster(ctx) })
	select {
	case <-ctx.Done():
	case <-d.store.synced:
		// Only now is it known what is not wanted any more.
		d.mu.Lock()
		for name := range d.deliveries {
			d.queue.Add(name)
		}
		d.mu.Unlock()
		d.queue.AddAfter(trimming, breath)
		for range workers {
			working.Go(func() { d.work(ctx) })
		}
	}
	d.rest()
	<-ctx.Done()
	cancel()
	d.queue.ShutDown()
	working.Wait()
	d.watcher.Wait()
	return nil
}

// adopt finds what was delivered before. Nothing is deployed before it is known what is there.
func (d *Deployer) adopt(ctx context.Context) error {
	for pace := retry.Unreachable(); ; {
		found, err := d.Cluster.List(ctx)
		if err == nil {
			for secret, is := range found.Unreadable {
				d.Log.Info("reading a release failing", "reason", is.Why.Error())
				d.setProblem(problemOf(secret), deployer.ReasonRemovalBlocked, is.Why.Error())
			}
			for name, summary := range found.Releases {
				d.deliveries[name] = &delivery{release: &summary, pace: retry.Failed()}
			}
			return nil
		}
		d.Log.Info("finding releases failing", "reason", err.Error())
		if err := retry.Wait(ctx, d.Clock, pace.Step()); err != nil {
			return err
		}
	}
}

// reported is told of a status on the hub: others may have waited for it.
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
			d.attend(ctx, name)
			d.end()
		}
		d.queue.Done(name)
		d.rest()
	}
}

func (d *Deployer) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy++
	d.Idle(false)
}

func (d *Deployer) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy--
}

// rest tells whether there is nothing to do and nothing to watch.
func (d *Deployer) rest() {
	wanted := d.store.all()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy > 0 || d.queue.Len() > 0 {
		return
	}
	leaving := false
	for _, of := range d.deliveries {
		leaving = leaving || !of.leaving.IsZero()
	}
	if !leaving {
		d.tellFirst()
	}
	rested := map[string]int64{}
	for _, deployment := range wanted {
		of := d.deliveries[deployment.Name]
		if of == nil || of.rested != deployment.Generation {
			return
		}
		rested[deployment.Name] = of.rested
	}
	for name, of := range d.deliveries {
		if rested[name] > 0 {
			continue
		}
		if of.ours(d.Member) {
			return
		}
	}
	if len(rested) > 0 {
		d.Rested(rested)
	}
	d.Idle(true)
}

// reconcile is observe, decide, act and report for one deployment.
func (d *Deployer) reconcile(ctx context.Context, name string, of *delivery) {
	if d.store.get(name) == nil && of.release == nil {
		d.forget(name)
		return
	}
	d.rouse(of, 0)
	s := d.observe(ctx, name, of)
	decision := decide(s.observed, d.Clock.Now())
	d.note(name, of, s, decision)
	err := d.act(ctx, name, of, s, decision)
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, release.ErrBusy) {
		d.Log.Info("deployment waits", "deployment", name, "reason", err.Error())
		d.queue.AddAfter(name, busyRetry) // nothing tells when a command has ended
		return
	}
	if err != nil {
		d.fail(name, of, s, err)
		return
	}
	switch decision.State {
	case Confirming, Removing, Moving, Deploying, Correcting:
		if decision.State == Confirming && !decision.Wake.IsZero() {
			d.queue.AddAfter(name, decision.Wake.Sub(d.Clock.Now()))
			return
		}
		of.failure, of.pace = failure{}, retry.Failed()
		d.queue.Add(name)
		d.queue.AddAfter(trimming, breath)
	case Gone, Kept, Held, Unsupported, Waiting, Failed, Watching:
		if d.report(ctx, name, of, s, decision) && decision.State == Watching && s.rests() {
			d.rouse(of, s.generation)
		}
		if !decision.Wake.IsZero() {
			d.queue.AddAfter(name, decision.Wake.Sub(d.Clock.Now()))
		}
	}
}

// rouse notes in which generation the agent's own release is well, 0 if that is not known.
func (d *Deployer) rouse(of *delivery, generation int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	of.rested = generation
}

// note logs a change of state, and whom to wake when another deployment is reported.
func (d *Deployer) note(name string, of *delivery, s seen, decision decision) {
	d.mu.Lock()
	if decision.State == Waiting {
		d.waiting[name] = true
	} else {
		delete(d.waiting, name)
	}
	d.mu.Unlock()
	if of.state != decision.State {
		d.Log.Info("deployment state", "deployment", name, "from", of.state, "to", decision.State, "reason", decision.Reason)
		of.state = decision.State
	}
	if s.unwatched == "" {
		of.unwatched = time.Time{}
	}
}

// fail remembers why an attempt failed, and has it looked at again at once, which reports it.
func (d *Deployer) fail(name string, of *delivery, s seen, err error) {
	if of.failure.of != s.generation {
		of.pace = retry.Failed()
	}
	d.awaited.failed(name, s.name, err)
	reason, message := d.explain(err)
	of.failure = failure{of: s.generation, reason: reason, message: message, retryAt: d.Clock.Now().Add(of.pace.Step())}
	d.Log.Info("deployment failing", "deployment", name, "reason", message, "retry", of.failure.retryAt)
	d.queue.Add(name)
}
