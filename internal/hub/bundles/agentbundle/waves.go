package agentbundle

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
	"github.com/muster-fleet/muster/internal/kube"
)

// waves is the common part of the controllers of both kinds of member. Each has a rollout, and so a
// budget, of its own.
type waves struct {
	controller.Deps
	chart    chart
	rollout  *rollout
	expected kube.Expectations
	// load guards loaded. loaded is true once the rollout knows all agents.
	load   sync.Mutex
	loaded bool
	// queue is the controller's own queue, set before the first request is reconciled.
	queue controller.Queue
}

func newWaves(deps controller.Deps, resources func(settings.Agent) ([]fleet.BundleResource, error)) *waves {
	return &waves{
		Deps: deps, chart: chart{resources: resources, packed: lru.New(charts)}, rollout: newRollout(),
		expected: kube.Expectations{Clock: deps.Clock, Timeout: cacheLag},
	}
}

// observation is the observation of an agent of one kind of member.
type observation interface {
	// inRollout returns the state of the agent, as the input for its turn.
	inRollout() agent
	// cached returns the membership object, and the object with the sent version; nil if there is
	// none.
	cached() (member, sent client.Object)
	// reportIn returns the wait before the first report.
	reportIn(state State, now time.Time) time.Duration
}

// start observes all agents once, before the first is admitted: each admission depends on the
// number in flight.
func (w *waves) start(ctx context.Context, observeAll func(context.Context) (map[types.NamespacedName]agent, error)) error {
	w.load.Lock()
	defer w.load.Unlock()
	if w.loaded {
		return nil
	}
	agents, err := observeAll(ctx)
	if err != nil {
		return err
	}
	w.rollout.fill(agents, w.Clock.Now())
	w.loaded = true
	return nil
}

// forget takes a member out of the rollout. Other agents may have waited for it.
func (w *waves) forget(member types.NamespacedName) {
	w.expected.Forget(member)
	w.Offers.Withdraw(member)
	w.enqueue(w.rollout.drop(member, w.Clock.Now()))
}

func (w *waves) enqueue(keys []types.NamespacedName) {
	for _, key := range keys {
		w.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// advance decides the next step of an agent, takes it, and reports the result.
func advance[O observation](ctx context.Context, w *waves, o O, act func(context.Context, O, decision) error,
	report func(context.Context, O, decision) (time.Duration, error)) (ctrl.Result, error) {
	now := w.Clock.Now()
	member, sent := o.cached()
	key, awaited := client.ObjectKeyFromObject(member), []client.Object{member}
	if sent != nil {
		awaited = append(awaited, sent)
	} else if wait := w.Joins.Delay(member.GetCreationTimestamp().Time, now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // a newly installed agent is up to date
	}
	if wait := w.expected.Await(key, awaited...); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil // the cache enqueues it earlier
	}
	decided, others := w.rollout.update(key, o.inRollout(), now)
	w.enqueue(others)
	if err := act(ctx, o, decided); err != nil {
		return ctrl.Result{}, err
	}
	if wait := o.reportIn(decided.state, now); wait > 0 {
		w.Offers.Withdraw(key)
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if wait, err := report(ctx, o, decided); err != nil || wait > 0 || decided.wake.IsZero() {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	return kube.At(decided.wake, now), nil
}

// share offers the first condition of an agent to the controller of its member, and returns the
// time until the caller writes the condition itself. Before a first heartbeat, the wait is longer
// while many members join.
func (w *waves) share(member client.Object, seen bool, add func(client.Object)) time.Duration {
	now, moment := w.Clock.Now(), controller.Moment
	if !seen {
		moment = w.Joins.Moment(now)
	}
	return w.Offers.Make(member, now, moment, add)
}
