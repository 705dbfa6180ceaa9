package placement

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// observeEvicted reads the members from evictions after the status listed them as picked. It
// matters only without any Work: an agent may have removed the last one before the status was
// written.
func (c *Controller) observeEvicted(ctx context.Context, o *observed) error {
	if o.kind != kindCRP || len(o.current) > 0 || len(o.before.PlacementStatuses) == 0 {
		return nil
	}
	var evictions placement.ClusterResourcePlacementEvictionList
	if err := c.Client.List(ctx, &evictions, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ClusterResourcePlacementEvictions: %w", err)
	}
	o.evicted = evictedSince(o.key.Name, &o.before, evictions.Items)
	return nil
}

// evictedSince returns the members picked in a status, but evicted later.
func evictedSince(name string, status *placement.PlacementStatus, evictions []placement.ClusterResourcePlacementEviction) map[string]bool {
	evicted := map[string]bool{}
	for _, s := range status.PlacementStatuses {
		picked := meta.FindStatusCondition(s.Conditions, placement.ConditionScheduled)
		for i := range evictions {
			e := &evictions[i]
			valid := meta.FindStatusCondition(e.Status.Conditions, placement.ConditionEvictionValid)
			if e.Spec.PlacementName != name || e.Spec.ClusterName != s.ClusterName || picked == nil || valid == nil {
				continue
			}
			if valid.Status == "True" && !meta.IsStatusConditionFalse(e.Status.Conditions, placement.ConditionEvictionExecuted) &&
				!valid.LastTransitionTime.Before(&picked.LastTransitionTime) {
				evicted[s.ClusterName] = true
			}
		}
	}
	return evicted
}
