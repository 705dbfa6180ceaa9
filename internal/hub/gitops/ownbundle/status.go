package ownbundle

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxConflicts limits the attempts to write a status that others write, too.
const maxConflicts = 5

// WriteStatus writes the status of a GitRepo or HelmOp, and returns the object. Other writers
// change other fields meanwhile: the hub writes the resources, and a replica the announcements of
// webhooks. Conflicts with them do not require another read of the repository or chart. describe
// gets the current object, and returns nil if the status must not be written.
func WriteStatus[T any, P pointer[T]](ctx context.Context, w Writer, kind string, before P, describe func(P) P) (P, error) {
	for attempt := 0; ; attempt++ {
		after := describe(before)
		err := kube.PatchStatus(ctx, w.Client, before, after)
		if !apierrors.IsConflict(err) || attempt == maxConflicts {
			return after, err
		}
		live, now := anyform.Object(kind), P(new(T))
		if err := w.Live.Get(ctx, client.ObjectKeyFromObject(before), live); err != nil {
			return nil, fmt.Errorf("reading %s %s again: %w", kind, client.ObjectKeyFromObject(before), err)
		}
		if anyform.Decode(live, now) != nil || now.GetUID() != before.GetUID() || now.GetGeneration() != before.GetGeneration() ||
			describe(now) == nil {
			return nil, err
		}
		before = now
	}
}

// pointer is a client.Object and a pointer to a T.
type pointer[T any] interface {
	*T
	client.Object
}

// Waiting lists the unready Bundles, each with the reason.
func Waiting(bundles []fleet.Bundle) (waiting []string) {
	for i := range bundles {
		b := &bundles[i]
		ready := kube.FindCondition(b.Status.Conditions, fleet.ConditionReady)
		switch {
		case b.Status.ObservedGeneration != b.Generation || ready == nil:
			waiting = append(waiting, b.Name+": the hub has not read it yet")
		case ready.Status != corev1.ConditionTrue:
			waiting = append(waiting, b.Name+": "+ready.Message)
		}
	}
	return waiting
}

// Readiness returns the condition Ready of the owner of ready Bundles.
func Readiness(bundles []fleet.Bundle) fleet.Condition {
	message := ""
	for i := range bundles {
		ready := kube.FindCondition(bundles[i].Status.Conditions, fleet.ConditionReady)
		if ready == nil || ready.Reason != reasons.NoTarget {
			message = ""
			break
		}
		message = cmp.Or(message, "deployed nowhere: "+bundles[i].Name+": "+ready.Message)
	}
	if message == "" {
		return kube.Condition(fleet.ConditionReady, true, reasons.Ready, "")
	}
	if more := len(bundles) - 1; more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return kube.Condition(fleet.ConditionReady, true, reasons.NoTarget, message)
}

// Conditions returns the conditions of an owner: the given ones without the problem, and Accepted.
// source is the condition about the look at the source.
func (t *Turn) Conditions(before []fleet.Condition, ready, source fleet.Condition, now time.Time) []fleet.Condition {
	accepted := kube.Condition(ConditionAccepted, true, reasons.Accepted, "")
	if p := t.Problem; p != nil {
		ready = kube.Condition(fleet.ConditionReady, false, p.Reason, p.Message)
		for _, one := range []*fleet.Condition{&accepted, &source} {
			if one.Type == p.Condition {
				*one = kube.Condition(p.Condition, false, p.Reason, p.Message)
			}
		}
	}
	after := kube.RemoveCondition(before, fleet.ConditionSupported) // from a hub without repositories
	for _, condition := range []fleet.Condition{ready, accepted, source} {
		after = kube.SetCondition(after, now, condition)
	}
	return after
}

// Display returns the columns of an owner with the given conditions.
func (t *Turn) Display(summary fleet.BundleSummary, conditions []fleet.Condition) fleet.SourceDisplay {
	shown := fleet.SourceDisplay{
		ReadyBundleDeployments: rollup.Ready(summary), State: string(rollup.Worst(summary)), Error: t.Problem != nil,
	}
	if ready := kube.FindCondition(conditions, fleet.ConditionReady); ready.Status != corev1.ConditionTrue {
		shown.Message = ready.Message
	}
	return shown
}

// Announce logs a transition of the condition Ready of an owner, and emits an Event about a
// problem. The status is written before.
func (t *Turn) Announce(ctx context.Context, recorder events.EventRecorder, owner Owner, before, after []fleet.Condition) {
	from, to := kube.ReasonOf(before, fleet.ConditionReady), kube.FindCondition(after, fleet.ConditionReady)
	if from == to.Reason {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Source of Bundles changed state", "kind", owner.Kind, "from", from, "to", to.Reason, "message", to.Message)
	if t.Problem != nil {
		recorder.Eventf(owner.Object, nil, corev1.EventTypeWarning, to.Reason, "Read", "%s", to.Message)
	}
}
