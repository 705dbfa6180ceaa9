package bundle

import (
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/selection"
)

// newMatcher returns the matcher of a Bundle, or an error for an invalid selector or rollout
// strategy.
func newMatcher(bundle *fleet.Bundle) (selection.Matcher, error) {
	return selection.NewMatcher(bundle, checkStrategy(bundle.Spec.RolloutStrategy))
}

// findOutranked adds a Cluster that a later target excludes without effect.
func (o *observed) findOutranked(m selection.Matcher, matched []int, cluster *fleet.Cluster, groups []*fleet.ClusterGroup) {
	later := m.ForbiddenLater(matched, cluster, groups)
	if later < 0 {
		return
	}
	if o.outrankedCount++; o.outrankedCount <= selection.MaxNear {
		o.outranked = append(o.outranked, m.Outranked(matched[0], later, cluster))
	}
}
