package helmop

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/gitops/ownbundle"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	readyCondition  = fleet.ConditionReady
	conditionPolled = "Polled"
)

// describe computes the status of a HelmOp.
func describe(before fleet.HelmOpStatus, op *fleet.HelmOp, bundle *fleet.Bundle, polls bool, turn ownbundle.Turn,
	now time.Time) fleet.HelmOpStatus {
	after := *before.DeepCopy()
	after.Version, after.ObservedGeneration, after.Summary = op.Status.Version, op.Status.ObservedGeneration, fleet.BundleSummary{}
	if bundle != nil {
		rollup.Add(&after.Summary, bundle.Status.Summary)
	}
	polled := kube.Condition(conditionPolled, true, reasons.Polled, "")
	if !polls {
		polled.Reason = reasons.PollingDisabled
	}
	after.Conditions = turn.Conditions(after.Conditions, readiness(bundle), polled, now)
	after.Display = turn.Display(after.Summary, after.Conditions)
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
	return ownbundle.Readiness([]fleet.Bundle{*bundle})
}

// report writes the status, and returns when to look again.
func (r *reconciliation) report(ctx context.Context) (reconcile.Result, error) {
	now := r.Clock.Now()
	after, err := ownbundle.WriteStatus(ctx, ownbundle.Writer{Client: r.Client, Live: r.Live}, kind, r.before,
		func(before *fleet.HelmOp) *fleet.HelmOp {
			after := before.DeepCopy()
			after.Status = describe(before.Status, r.op, r.bundle, r.interval() > 0, r.Turn, now)
			return after
		})
	if err != nil {
		return reconcile.Result{}, err
	}
	r.tell(ctx, after)
	if r.Problem != r.seen.problem { // the spec or a Policy refuses it, and a change of these is an event
		return reconcile.Result{}, nil
	}
	next := r.Again
	if r.seen.problem != nil || r.interval() > 0 {
		next = kube.Earlier(next, r.seen.next)
	}
	if next.IsZero() {
		return reconcile.Result{}, nil
	}
	return kube.At(next, now), nil
}

// tell emits an Event about a new version, and announces a transition.
func (r *reconciliation) tell(ctx context.Context, after *fleet.HelmOp) {
	if r.before.Status.Version != after.Status.Version {
		r.Recorder.Eventf(after, nil, corev1.EventTypeNormal, reasons.GotNewVersion, "Read", "the Bundle is at version %s", after.Status.Version)
	}
	r.Announce(ctx, r.Recorder, ownerOf(after), r.before.Status.Conditions, after.Status.Conditions)
}
