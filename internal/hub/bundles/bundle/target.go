package bundle

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// criteria are the ways to select Clusters in targets, restrictions and partitions.
type criteria struct {
	clusterName          string
	clusterSelector      labels.Selector // nil if not set
	clusterGroup         string
	clusterGroupSelector labels.Selector // nil if not set
}

func newCriteria(clusterName string, clusterSelector *metav1.LabelSelector, clusterGroup string,
	clusterGroupSelector *metav1.LabelSelector) (criteria, error) {
	c := criteria{clusterName: clusterName, clusterGroup: clusterGroup}
	var err error
	if c.clusterSelector, err = optionalSelector(clusterSelector); err != nil {
		return c, fmt.Errorf("clusterSelector: %w", err)
	}
	if c.clusterGroupSelector, err = optionalSelector(clusterGroupSelector); err != nil {
		return c, fmt.Errorf("clusterGroupSelector: %w", err)
	}
	return c, nil
}

func optionalSelector(selector *metav1.LabelSelector) (labels.Selector, error) {
	if selector == nil {
		return nil, nil
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// usesGroups reports whether ClusterGroups matter.
func (c criteria) usesGroups() bool { return c.clusterGroup != "" || c.clusterGroupSelector != nil }

// matches reports whether a Cluster in these groups meets all criteria in use. Without any it
// matches nothing.
func (c criteria) matches(cluster *fleet.Cluster, groups []*fleet.ClusterGroup) bool {
	if c.clusterName == "" && c.clusterSelector == nil && !c.usesGroups() {
		return false
	}
	if c.clusterName != "" && c.clusterName != cluster.Name && c.clusterName != cluster.Labels[fleet.LabelClusterDisplayName] {
		return false
	}
	if c.clusterSelector != nil && !c.clusterSelector.Matches(labels.Set(cluster.Labels)) {
		return false
	}
	if !c.usesGroups() {
		return true
	}
	return slices.ContainsFunc(groups, c.means)
}

// means reports whether criteria with ClusterGroups apply to the Clusters of a group.
func (c criteria) means(group *fleet.ClusterGroup) bool {
	named := c.clusterGroup == "" || c.clusterGroup == group.Name
	return named && (c.clusterGroupSelector == nil || c.clusterGroupSelector.Matches(labels.Set(group.Labels)))
}

// matcher selects the Clusters of a Bundle. It is created once per Bundle and used for all
// Clusters.
type matcher struct {
	bundle       *fleet.Bundle
	targets      []criteria
	restrictions []criteria
	partitions   []criteria
}

func newMatcher(bundle *fleet.Bundle) (matcher, error) {
	m := matcher{bundle: bundle}
	var problems []error
	add := func(to *[]criteria, path string, c criteria, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s.%s", path, kube.Clip(err.Error(), maxQuoted)))
		}
		*to = append(*to, c)
	}
	for i, t := range bundle.Spec.Targets {
		c, err := newCriteria(t.ClusterName, t.ClusterSelector, t.ClusterGroup, t.ClusterGroupSelector)
		add(&m.targets, fmt.Sprintf("targets[%d]", i), c, err)
	}
	for i, t := range bundle.Spec.TargetRestrictions {
		c, err := newCriteria(t.ClusterName, t.ClusterSelector, t.ClusterGroup, t.ClusterGroupSelector)
		add(&m.restrictions, fmt.Sprintf("targetRestrictions[%d]", i), c, err)
	}
	if strategy := bundle.Spec.RolloutStrategy; strategy != nil {
		for i, p := range strategy.Partitions {
			c, err := newCriteria(p.ClusterName, p.ClusterSelector, p.ClusterGroup, p.ClusterGroupSelector)
			add(&m.partitions, fmt.Sprintf("rolloutStrategy.partitions[%d]", i), c, err)
		}
	}
	switch mode := bundle.Spec.TargetCustomizationMode; mode {
	case "", fleet.FirstMatch, fleet.AllMatches:
	default:
		problems = append(problems, fmt.Errorf("targetCustomizationMode is %q: it is %s or %s", mode, fleet.FirstMatch, fleet.AllMatches))
	}
	if err := checkStrategy(bundle.Spec.RolloutStrategy); err != nil {
		problems = append(problems, err)
	}
	if all := len(problems); all > maxProblems {
		problems = append(problems[:maxProblems], fmt.Errorf("and %d more", all-maxProblems))
	}
	return m, errors.Join(problems...)
}

// usesGroups reports whether ClusterGroups matter to the Bundle.
func (m matcher) usesGroups() bool {
	for _, list := range [][]criteria{m.targets, m.restrictions, m.partitions} {
		for _, c := range list {
			if c.usesGroups() {
				return true
			}
		}
	}
	return false
}

// unknownGroups returns the reason why the Clusters in the Bundle's ClusterGroups are unknown.
func (m matcher) unknownGroups(groups []fleet.ClusterGroup) error {
	var problems []error
	for i := range groups {
		_, err := metav1.LabelSelectorAsSelector(groups[i].Spec.Selector)
		if err == nil || len(problems) == maxProblems {
			continue
		}
		for _, c := range slices.Concat(m.targets, m.restrictions, m.partitions) {
			if c.usesGroups() && c.means(&groups[i]) {
				problems = append(problems, fmt.Errorf("nobody knows which Clusters are in ClusterGroup %s/%s: spec.selector: %s",
					groups[i].Namespace, groups[i].Name, kube.Clip(err.Error(), maxQuoted)))
				break
			}
		}
	}
	return errors.Join(problems...)
}

// match returns the indexes of the targets that give a Cluster its options, in order. It returns
// none if the Bundle does not select the Cluster.
func (m matcher) match(cluster *fleet.Cluster, groups []*fleet.ClusterGroup) []int {
	if m.bundle.Labels[fleet.LabelAgent] != "" && !metav1.IsControlledBy(m.bundle, cluster) {
		return nil // an agent's Bundle has one Cluster, regardless of other names
	}
	allowed := len(m.restrictions) == 0
	for _, r := range m.restrictions {
		allowed = allowed || r.matches(cluster, groups)
	}
	if !allowed {
		return nil
	}
	var matched []int
	for i, t := range m.targets {
		if !t.matches(cluster, groups) {
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

// partition returns the index of a Cluster's first partition in the rollout. Clusters in no
// partition come last.
func (m matcher) partition(cluster *fleet.Cluster, groups []*fleet.ClusterGroup) int {
	for i, p := range m.partitions {
		if p.matches(cluster, groups) {
			return i
		}
	}
	return len(m.partitions)
}

// selectingGroup is a ClusterGroup with its selector.
type selectingGroup struct {
	*fleet.ClusterGroup
	selector labels.Selector
}

// selecting parses the selectors of ClusterGroups, once for all Clusters. Groups with an invalid
// selector select nothing.
func selecting(groups []fleet.ClusterGroup) (all []selectingGroup) {
	for i := range groups {
		if selector, err := metav1.LabelSelectorAsSelector(groups[i].Spec.Selector); err == nil {
			all = append(all, selectingGroup{&groups[i], selector})
		}
	}
	return all
}

// groupsOf returns the ClusterGroups of a Cluster in its workspace.
func groupsOf(cluster *fleet.Cluster, groups []selectingGroup) (in []*fleet.ClusterGroup) {
	for _, group := range groups {
		if group.Namespace == cluster.Namespace && group.selector.Matches(labels.Set(cluster.Labels)) {
			in = append(in, group.ClusterGroup)
		}
	}
	return in
}
