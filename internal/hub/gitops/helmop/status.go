package helmop

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	readyCondition    = fleet.ConditionReady
	conditionAccepted = "Accepted"
	conditionPolled   = "Polled"
)

// describe computes the status of a HelmOp.
func describe(before fleet.HelmOpStatus, op *fleet.HelmOp, bundle *fleet.Bundle, polls bool, p *problem, now time.Time) fleet.HelmOpStatus {
	after := *before.DeepCopy()
	after.Version, after.ObservedGeneration, after.Summary = op.Status.Version, op.Status.ObservedGeneration, fleet.BundleSummary{}
	if bundle != nil {
		rollup.Add(&after.Summary, bundle.Status.Summary)
	}
	accepted := kube.Condition(conditionAccepted, true, reasons.Accepted, "")
	polled := kube.Condition(conditionPolled, true, reasons.Polled, "")
	if !polls {
		polled.Reason = reasons.PollingDisabled
	}
	ready := readiness(bundle)
	if p != nil {
		ready = kube.Condition(readyCondition, false, p.reason, p.message)
		switch p.condition {
		case conditionAccepted:
			accepted = kube.Condition(conditionAccepted, false, p.reason, p.message)
		case conditionPolled:
			polled = kube.Condition(conditionPolled, false, p.reason, p.message)
		}
	}
	after.Conditions = kube.RemoveCondition(after.Conditions, fleet.ConditionSupported) // of a hub without HelmOps
	for _, condition := range []fleet.Condition{ready, accepted, polled} {
		after.Conditions = kube.SetCondition(after.Conditions, now, condition)
	}
	after.Display = fleet.SourceDisplay{
		ReadyBundleDeployments: rollup.Ready(after.Summary), State: string(rollup.Worst(after.Summary)), Error: p != nil,
	}
	if ready.Status != corev1.ConditionTrue {
		after.Display.Message = ready.Message
	}
	return after
}

// readiness returns the condition Ready of a HelmOp without a problem.
func readiness(bundle *fleet.Bundle) fleet.Condition {
	if bundle == nil {
		return kube.Condition(readyCondition, false, reasons.BundlesNotReady, "the Bundle has just been written")
	}
	if waiting := ownbundle.Waiting([]fleet.Bundle{*bundle}); len(waiting) > 0 {
		return kube.Condition(readyCondition, false, reasons.BundlesNotReady, strings.Join(waiting, "; "))
	}
	return kube.Condition(readyCondition, true, reasons.Ready, "")
}

// report writes the status, and returns when to look again.
func (r *reconciliation) report(ctx context.Context) (reconcile.Result, error) {
	now := r.Clock.Now()
	after, err := ownbundle.WriteStatus(ctx, ownbundle.Writer{Client: r.Client, Live: r.Live}, kind, r.before,
		func(before *fleet.HelmOp) *fleet.HelmOp {
			after := before.DeepCopy()
			after.Status = describe(before.Status, r.op, r.bundle, r.interval() > 0, r.problem, now)
			return after
		})
	if err != nil {
		return reconcile.Result{}, err
	}
	r.tell(ctx, after)
	if r.problem != r.seen.problem { // the spec or a Policy refuses it, and a change of these is an event
		return reconcile.Result{}, nil
	}
	next := r.again
	if r.seen.problem != nil || r.interval() > 0 {
		next = kube.Earlier(next, r.seen.next)
	}
	if next.IsZero() {
		return reconcile.Result{}, nil
	}
	return kube.At(next, now), nil
}

// tell logs a transition and emits an Event, after the status was written.
func (r *reconciliation) tell(ctx context.Context, after *fleet.HelmOp) {
	if r.before.Status.Version != after.Status.Version {
		r.Recorder.Eventf(after, nil, corev1.EventTypeNormal, reasons.GotNewVersion, "Read", "the Bundle is at version %s", after.Status.Version)
	}
	from, to := kube.ReasonOf(r.before.Status.Conditions, readyCondition), kube.FindCondition(after.Status.Conditions, readyCondition)
	if from == to.Reason {
		return
	}
	ctrl.LoggerFrom(ctx).Info("HelmOp changed state", "from", from, "to", to.Reason, "message", to.Message)
	if r.problem != nil {
		r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, to.Reason, "Read", "%s", to.Message)
	}
}
