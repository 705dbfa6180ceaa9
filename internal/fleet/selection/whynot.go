package selection

import (
	"slices"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// WhyNot returns the reason why a Bundle does not select a Cluster in these ClusterGroups, with the
// almost matching targets. It is empty for a selected Cluster.
func (m Matcher) WhyNot(cluster *fleet.Cluster, groups []*fleet.ClusterGroup) string {
	if m.Match(cluster, groups) != nil {
		return ""
	}
	if len(m.targets) == 0 {
		return "it has no targets"
	}
	first := slices.IndexFunc(m.targets, func(c Criteria) bool { return c.Matches(cluster, groups) })
	restricted := len(m.restrictions) > 0 &&
		!slices.ContainsFunc(m.restrictions, func(c Criteria) bool { return c.Matches(cluster, groups) })
	near := m.Unmatched()
	near.Remove(cluster, groups)
	switch {
	case first < 0:
		return "no target matches" + near.Near()
	case restricted:
		return m.NameOf(first) + " matches, but no entry of targetRestrictions does" + near.Near()
	}
	for i, t := range m.targets {
		if m.bundle.Spec.Targets[i].DoNotDeploy && t.Matches(cluster, groups) {
			return m.NameOf(i) + " has doNotDeploy"
		}
	}
	return "it is the Bundle of another Cluster's agent"
}
