// Package selection matches Clusters against the ways to select them in Bundles and Schedules: by
// name, by labels, and by ClusterGroups.
//
// Its invariant: empty criteria match nothing.
package selection

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Criteria are the ways to select Clusters in targets, restrictions and partitions.
type Criteria struct {
	clusterName          string
	clusterSelector      labels.Selector // nil if not set
	clusterGroup         string
	clusterGroupSelector labels.Selector // nil if not set
}

// New returns criteria, or an error for an invalid selector.
func New(clusterName string, clusterSelector *metav1.LabelSelector, clusterGroup string,
	clusterGroupSelector *metav1.LabelSelector) (Criteria, error) {
	c := Criteria{clusterName: clusterName, clusterGroup: clusterGroup}
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

// UsesGroups reports whether ClusterGroups matter.
func (c Criteria) UsesGroups() bool { return c.clusterGroup != "" || c.clusterGroupSelector != nil }

// Matches reports whether a Cluster in these groups meets all criteria in use. Without criteria it
// matches nothing.
func (c Criteria) Matches(cluster *fleet.Cluster, groups []*fleet.ClusterGroup) bool {
	if c.clusterName == "" && c.clusterSelector == nil && !c.UsesGroups() {
		return false
	}
	if c.clusterName != "" && c.clusterName != cluster.Name && c.clusterName != cluster.Labels[fleet.LabelClusterDisplayName] {
		return false
	}
	if c.clusterSelector != nil && !c.clusterSelector.Matches(labels.Set(cluster.Labels)) {
		return false
	}
	if !c.UsesGroups() {
		return true
	}
	return slices.ContainsFunc(groups, c.Means)
}

// Means reports whether criteria with ClusterGroups apply to the Clusters of a group.
func (c Criteria) Means(group *fleet.ClusterGroup) bool {
	named := c.clusterGroup == "" || c.clusterGroup == group.Name
	return named && (c.clusterGroupSelector == nil || c.clusterGroupSelector.Matches(labels.Set(group.Labels)))
}

// Group is a ClusterGroup with its selector.
type Group struct {
	*fleet.ClusterGroup
	selector labels.Selector
}

// Groups parses the selectors of ClusterGroups, once for all Clusters. Groups with an invalid
// selector select nothing.
func Groups(groups []fleet.ClusterGroup) (all []Group) {
	for i := range groups {
		if selector, err := metav1.LabelSelectorAsSelector(groups[i].Spec.Selector); err == nil {
			all = append(all, Group{&groups[i], selector})
		}
	}
	return all
}

// GroupsOf returns the ClusterGroups of a Cluster in its workspace.
func GroupsOf(cluster *fleet.Cluster, groups []Group) (in []*fleet.ClusterGroup) {
	for _, group := range groups {
		if group.Namespace == cluster.Namespace && group.selector.Matches(labels.Set(cluster.Labels)) {
			in = append(in, group.ClusterGroup)
		}
	}
	return in
}
