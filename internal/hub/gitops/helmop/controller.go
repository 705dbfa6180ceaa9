// Package helmop keeps the Bundles of HelmOps at the chosen versions of their charts.
//
// It writes one Bundle with a HelmOp as its controller, and the status of HelmOps. Its invariants:
// all members get the same version. A failure to read a chart changes nothing.
package helmop

import (
	"context"
	"time"

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
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/hub/gitops/shares"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
	hubcontroller "github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// looks is the maximum number of HelmOps at work at once, fetches the maximum number of charts in
	// memory.
	looks, fetches = 20, 4
	// fetchesShare is the maximum number of charts of one workspace at work at once.
	fetchesShare = 3
	// lookTimeout and fetchTimeout bound the time for one chart.
	lookTimeout, fetchTimeout = 30 * time.Second, 2 * time.Minute
	// retryInterval is the first time between two attempts after a failure, maxBackoff the longest.
	retryInterval, maxBackoff = 15 * time.Second, 10 * time.Minute
	minInterval               = time.Second
	// cacheLag is the longest time for the cache to show a write.
	cacheLag = 5 * time.Second
)

// Deps are the dependencies of the controller.
type Deps struct {
	client.Client
	// Live reads Secrets, and Bundles before they are written.
	Live     client.Reader
	Clock    clock.PassiveClock
	Recorder events.EventRecorder
	Charts   *chartfetch.Fetcher
}

// kind is the kind of HelmOps.
const kind = "HelmOp"

// Controller reconciles HelmOps.
type Controller struct {
	Deps
	// fetching limits the charts fetched at once.
	fetching chan struct{}
	// shares divide the charts at work among the workspaces.
	shares *shares.Shares
	// looked holds the state of each chart, by the UID of its HelmOp.
	looked kube.Memory[types.UID, *seen]
}

// New returns the controller.
func New(deps Deps) *Controller {
	return &Controller{Deps: deps, fetching: make(chan struct{}, fetches), shares: shares.New(fetchesShare)}
}

// Register adds the controller to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	sameNamespace := anyform.InNamespace(c.Client, kind)
	return ctrl.NewControllerManagedBy(mgr).Named("helmop").
		For(anyform.Object(kind)).
		Owns(&fleet.Bundle{}).
		Watches(&fleet.Policy{}, sameNamespace).
		WatchesRawSource(source.Func(c.shares.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: looks}).
		Complete(hubcontroller.RetryConflicts(c.Recorder, c))
}

// Reconcile looks for a version if it is time to, writes the Bundle, and writes the status.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	defer c.shares.PassOn(request.NamespacedName)
	op := &fleet.HelmOp{}
	found, err := anyform.Read(ctx, c.Client, request.NamespacedName, op, reasons.HelmOpInvalid, c.Clock.Now())
	if !op.DeletionTimestamp.IsZero() {
		c.looked.Forget(op.UID) // the garbage collector deletes the Bundle
	}
	if err != nil || !found {
		return reconcile.Result{}, err
	}
	r := &reconciliation{Controller: c, op: op, before: op.DeepCopy()}
	if err := r.observe(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.act(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if r.waits {
		return reconcile.Result{}, nil // shares enqueue it
	}
	if r.AwaitsGrant(c.Clock.Since(op.CreationTimestamp.Time)) {
		return reconcile.Result{RequeueAfter: r.Problem.Again}, nil
	}
	return r.report(ctx)
}

// reconciliation is one turn for a HelmOp.
type reconciliation struct {
	*Controller
	op, before *fleet.HelmOp
	// bundle is the Bundle of the HelmOp; nil if there is none.
	bundle *fleet.Bundle
	seen   *seen
	// waits is set without a place among the charts at work.
	waits bool
	ownbundle.Turn
}

// seen is the state of a chart. One turn at a time uses it.
type seen struct {
	// generation is the generation of the spec at the last attempt.
	generation int64
	// problem is the failure of that attempt, nil after a success. failures counts them.
	problem  *ownbundle.Problem
	failures int
	// next is the time of the next look, and wrote the time when the Bundle was last written.
	next, wrote time.Time
}

func (c *Controller) seenOf(op *fleet.HelmOp) *seen {
	return c.looked.Of(op.UID, &seen{generation: op.Status.ObservedGeneration})
}
