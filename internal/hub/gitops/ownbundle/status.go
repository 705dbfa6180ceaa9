package ownbundle

import (
	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

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
