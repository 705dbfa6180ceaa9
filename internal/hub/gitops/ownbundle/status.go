package ownbundle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxConflicts limits the attempts to write a status that others write, too.
const maxConflicts = 5

// WriteStatus writes the status of a GitRepo or HelmOp, and returns the object. Others write other
// fields of it while a commit or chart is read: the hub the resources, a replica what webhooks
// announce. Conflicts with them are no reason to read again. describe gets the object as it is, and
// returns nil if the status must not be written.
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

// pointer is a client.Object that is a pointer to a T.
type pointer[T any] interface {
	*T
	client.Object
}

// Waiting says of each Bundle that is not ready why it is not.
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
