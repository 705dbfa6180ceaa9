package selection

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// MaxNear is the maximum number of Clusters in a message.
const MaxNear = 3

// Unmatched collects the targets without a Cluster, each with its almost matching Clusters.
type Unmatched struct {
	matcher Matcher
	targets []*near
}

// near collects the almost matching Clusters of a target. Clusters with only a difference in case
// come first: they are the likeliest.
type near struct {
	target        int
	byCase, byKey []string
}

// Unmatched returns all targets, before the first Cluster.
func (m Matcher) Unmatched() Unmatched {
	u := Unmatched{matcher: m}
	for i := range m.targets {
		u.targets = append(u.targets, &near{target: i})
	}
	return u
}

// Remove removes the targets matching a Cluster. It keeps the others, and notes how close the
// Cluster comes to them.
func (u *Unmatched) Remove(cluster *fleet.Cluster, groups []*fleet.ClusterGroup) {
	u.targets = slices.DeleteFunc(u.targets, func(n *near) bool { return u.matcher.targets[n.target].Matches(cluster, groups) })
	for _, n := range u.targets {
		if len(n.byCase) < MaxNear {
			n.add(u.matcher, cluster)
		}
	}
}

func (n *near) add(m Matcher, cluster *fleet.Cluster) {
	switch differs, onlyCase := m.difference(n.target, cluster); {
	case differs == "":
	case onlyCase:
		n.byCase = append(n.byCase, fmt.Sprintf("Cluster %s/%s has %s", cluster.Namespace, cluster.Name, differs))
	case len(n.byKey) < MaxNear:
		n.byKey = append(n.byKey, fmt.Sprintf("Cluster %s/%s has %s", cluster.Namespace, cluster.Name, differs))
	}
}

// AbsentGroups returns the end of a message about ClusterGroups in targets that do not exist; empty
// if there are none.
func (m Matcher) AbsentGroups(groups []fleet.ClusterGroup) string {
	var names []string
	for i := range m.bundle.Spec.Targets {
		name := m.bundle.Spec.Targets[i].ClusterGroup
		exists := slices.ContainsFunc(groups, func(g fleet.ClusterGroup) bool { return g.Name == name })
		if name != "" && !exists && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; there is no ClusterGroup " + kube.JoinNames(names[:min(len(names), MaxNear)], len(names))
}

// Any reports whether there are any targets.
func (u *Unmatched) Any() bool { return len(u.targets) > 0 }

// String names the targets.
func (u *Unmatched) String() string {
	var names []string
	for _, n := range u.targets[:min(len(u.targets), MaxNear)] {
		names = append(names, u.matcher.NameOf(n.target))
	}
	return kube.JoinNames(names, len(u.targets))
}

// Near names the near Clusters, with a separator before them; empty if there are none.
func (u *Unmatched) Near() string {
	var byCase, byKey []string
	for _, n := range u.targets {
		byCase, byKey = append(byCase, n.byCase...), append(byKey, n.byKey...)
	}
	all := slices.Concat(byCase, byKey)
	if len(all) == 0 {
		return ""
	}
	return "; near: " + kube.Clip(strings.Join(all[:min(len(all), MaxNear)], "; "), maxQuoted)
}

// difference returns the only difference between a target and a Cluster: a name in another case, or
// one label. It is empty for more differences, or for a useless one.
func (m Matcher) difference(i int, cluster *fleet.Cluster) (differs string, onlyCase bool) {
	t := &m.bundle.Spec.Targets[i]
	if m.targets[i].UsesGroups() || t.ClusterSelector != nil && len(t.ClusterSelector.MatchExpressions) > 0 {
		return "", false
	}
	named := t.ClusterName == "" || t.ClusterName == cluster.Name || t.ClusterName == cluster.Labels[fleet.LabelClusterDisplayName]
	if !named {
		if !strings.EqualFold(t.ClusterName, cluster.Name) ||
			t.ClusterSelector != nil && !labels.SelectorFromSet(t.ClusterSelector.MatchLabels).Matches(labels.Set(cluster.Labels)) {
			return "", false
		}
		return fmt.Sprintf("that name, and targets[%d] names %s", i, t.ClusterName), true
	}
	if t.ClusterSelector == nil {
		return "", false
	}
	return labelDifference(i, t.ClusterSelector.MatchLabels, cluster.Labels)
}

// labelDifference returns the only label of a target that a Cluster lacks.
func labelDifference(i int, wanted, labels map[string]string) (differs string, onlyCase bool) {
	missing := ""
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if value, there := labels[key]; there && value == wanted[key] {
			continue
		}
		if missing != "" {
			return "", false
		}
		missing = key
	}
	if missing == "" {
		return "", false
	}
	target := fmt.Sprintf(", and targets[%d] selects %s=%s", i, missing, wanted[missing])
	if value, there := labels[missing]; there {
		return "label " + missing + "=" + value + target, strings.EqualFold(value, wanted[missing])
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if strings.EqualFold(key, missing) {
			return "label " + key + "=" + labels[key] + target, strings.EqualFold(labels[key], wanted[missing])
		}
	}
	if len(wanted) == 1 { // every Cluster without the label would be near
		return "", false
	}
	return "no label " + missing + target, false
}

// ForbiddenLater returns the index of a target with doNotDeploy for a Cluster. The target has no
// effect, because another target comes first. The index is -1 if there is none.
func (m Matcher) ForbiddenLater(matched []int, cluster *fleet.Cluster, groups []*fleet.ClusterGroup) int {
	if len(matched) == 0 || m.bundle.Spec.TargetCustomizationMode == fleet.AllMatches {
		return -1
	}
	for i := matched[0] + 1; i < len(m.targets); i++ {
		if m.bundle.Spec.Targets[i].DoNotDeploy && m.targets[i].Matches(cluster, groups) {
			return i
		}
	}
	return -1
}

// Outranked describes a Cluster that gets the Bundle although a later target has doNotDeploy.
func (m Matcher) Outranked(first, later int, cluster *fleet.Cluster) string {
	return fmt.Sprintf("Cluster %s/%s gets the Bundle by %s, although %s has doNotDeploy: the first matching target decides; "+
		"put the target with doNotDeploy first, or set targetCustomizationMode: AllMatches",
		cluster.Namespace, cluster.Name, m.NameOf(first), m.NameOf(later))
}

// NameOf returns the position of a target in the Bundle, with its name.
func (m Matcher) NameOf(i int) string {
	if name := m.bundle.Spec.Targets[i].Name; name != "" {
		return fmt.Sprintf("targets[%d] (%s)", i, name)
	}
	return fmt.Sprintf("targets[%d]", i)
}
