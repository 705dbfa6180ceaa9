package selection

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxProblems limits the invalid selectors named at once, maxQuoted the length of each error.
const maxProblems, maxQuoted = 3, 400

// Matcher selects the Clusters of a Bundle. It is created once per Bundle and used for all
// Clusters.
type Matcher struct {
	bundle       *fleet.Bundle
	targets      []Criteria
	restrictions []Criteria
	partitions   []Criteria
}

// NewMatcher returns the Matcher of a Bundle, or an error for invalid selectors. The error also has
// the given problem of the Bundle, if there is one.
func NewMatcher(bundle *fleet.Bundle, problem error) (Matcher, error) {
	m := Matcher{bundle: bundle}
	var problems []error
	add := func(to *[]Criteria, path string, c Criteria, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s.%s", path, kube.Clip(err.Error(), maxQuoted)))
		}
		*to = append(*to, c)
	}
	for i, t := range bundle.Spec.Targets {
		c, err := New(t.ClusterName, t.ClusterSelector, t.ClusterGroup, t.ClusterGroupSelector)
		add(&m.targets, fmt.Sprintf("targets[%d]", i), c, err)
	}
	for i, t := range bundle.Spec.TargetRestrictions {
		c, err := New(t.ClusterName, t.ClusterSelector, t.ClusterGroup, t.ClusterGroupSelector)
		add(&m.restrictions, fmt.Sprintf("targetRestrictions[%d]", i), c, err)
	}
	if strategy := bundle.Spec.RolloutStrategy; strategy != nil {
		for i, p := range strategy.Partitions {
			c, err := New(p.ClusterName, p.ClusterSelector, p.ClusterGroup, p.ClusterGroupSelector)
			add(&m.partitions, fmt.Sprintf("rolloutStrategy.partitions[%d]", i), c, err)
		}
	}
	switch mode := bundle.Spec.TargetCustomizationMode; mode {
	case "", fleet.FirstMatch, fleet.AllMatches:
	default:
		problems = append(problems, fmt.Errorf("targetCustomizationMode is %q: it is %s or %s", mode, fleet.FirstMatch, fleet.AllMatches))
	}
	if problem != nil {
		problems = append(problems, problem)
	}
	if all := len(problems); all > maxProblems {
		problems = append(problems[:maxProblems], fmt.Errorf("and %d more", all-maxProblems))
	}
	return m, errors.Join(problems...)
}

// UsesGroups reports whether ClusterGroups matter to the Bundle.
func (m Matcher) UsesGroups() bool {
	for _, list := range [][]Criteria{m.targets, m.restrictions, m.partitions} {
		for _, c := range list {
			if c.UsesGroups() {
				return true
			}
		}
	}
	return false
}

// UnknownGroups returns the reason why the Clusters in the Bundle's ClusterGroups are unknown.
func (m Matcher) UnknownGroups(groups []fleet.ClusterGroup) error {
	var problems []error
	for i := range groups {
		_, err := metav1.LabelSelectorAsSelector(groups[i].Spec.Selector)
		if err == nil || len(problems) == maxProblems {
			continue
		}
		for _, c := range slices.Concat(m.targets, m.restrictions, m.partitions) {
			if c.UsesGroups() && c.Means(&groups[i]) {
				problems = append(problems, fmt.Errorf("the Clusters of ClusterGroup %s/%s are unknown: spec.selector: %s",
					groups[i].Namespace, groups[i].Name, kube.Clip(err.Error(), maxQuoted)))
				break
			}
		}
	}
	return errors.Join(problems...)
}

// Match returns the indexes of the targets with options for a Cluster, in order. It returns none if
// the Bundle does not select the Cluster.
func (m Matcher) Match(cluster *fleet.Cluster, groups []*fleet.ClusterGroup) []int {
	if m.bundle.Labels[fleet.LabelAgent] != "" && !metav1.IsControlledBy(m.bundle, cluster) {
		return nil // an agent's Bundle has one Cluster; other names do not matter
	}
	allowed := len(m.restrictions) == 0
	for _, r := range m.restrictions {
		allowed = allowed || r.Matches(cluster, groups)
	}
	if !allowed {
		return nil
	}
	var matched []int
	for i, t := range m.targets {
		if !t.Matches(cluster, groups) {
			continue
		}
		if m.bundle.Spec.Targets[i].DoNotDeploy {
			return nil
		}
		matched = append(matched, i)
		if m.bundle.Spec.TargetCustomizationMode != fleet.AllMatches {
			break
		}
	}
	return matched
}

// Partition returns the index of a Cluster's first partition in the rollout. Clusters in no
// partition come last.
func (m Matcher) Partition(cluster *fleet.Cluster, groups []*fleet.ClusterGroup) int {
	for i, p := range m.partitions {
		if p.Matches(cluster, groups) {
			return i
		}
	}
	return len(m.partitions)
}
