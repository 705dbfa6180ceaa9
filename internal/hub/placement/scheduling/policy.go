// Package scheduling picks the members of a placement: filter, score, pick.
//
// It has no client and no clock: the same policy, members and current holders of the placement
// give the same result. Its invariant: a placement moves only if its policy requires it, never
// because another member became better.
package scheduling

import (
	"cmp"
	"fmt"
	"slices"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// Policy is a compiled PlacementPolicy.
type Policy struct {
	kind        placement.PlacementType
	names       []string
	number      int
	required    []term
	preferred   []preference
	spread      []constraint
	tolerations []placement.Toleration
	// namespace is the namespace of a ResourcePlacement. Members must admit it and have it.
	namespace string
}

// AnnotationFrom on a membership object, or on its workspace, lists namespaces separated by
// commas. The member admits their ResourcePlacements; AnyNamespace stands for all. Without it a
// MemberCluster admits all namespaces, and a Cluster none.
const AnnotationFrom = "muster/placement-from"

// constraint is one TopologySpreadConstraint.
type constraint struct {
	key     string
	maxSkew int
	strict  bool
}

// Compile compiles the policy of a placement; nil picks all members. The namespace is set for a
// ResourcePlacement, else empty. The error names the wrong field.
func Compile(p *placement.PlacementPolicy, namespace string) (*Policy, error) {
	if p == nil {
		p = &placement.PlacementPolicy{}
	}
	policy := &Policy{
		kind: cmp.Or(p.PlacementType, placement.PickAll), names: slices.Compact(slices.Sorted(slices.Values(p.ClusterNames))),
		tolerations: p.Tolerations, namespace: namespace,
	}
	if p.NumberOfClusters != nil {
		policy.number = int(*p.NumberOfClusters)
	}
	for _, c := range p.TopologySpreadConstraints {
		compiled := constraint{key: c.TopologyKey, maxSkew: 1, strict: c.WhenUnsatisfiable != placement.ScheduleAnyway}
		if c.MaxSkew != nil {
			compiled.maxSkew = int(*c.MaxSkew)
		}
		policy.spread = append(policy.spread, compiled)
	}
	if p.Affinity == nil || p.Affinity.ClusterAffinity == nil {
		return policy, nil
	}
	return policy, policy.compileAffinity(p.Affinity.ClusterAffinity)
}

func (p *Policy) compileAffinity(affinity *placement.ClusterAffinity) error {
	const path = "spec.policy.affinity.clusterAffinity."
	if affinity.Required != nil {
		for i, t := range affinity.Required.ClusterSelectorTerms {
			compiled, err := compileTerm(t, fmt.Sprintf("%srequiredDuringSchedulingIgnoredDuringExecution.clusterSelectorTerms[%d]", path, i))
			if err != nil {
				return err
			}
			p.required = append(p.required, compiled)
		}
	}
	for i, preferred := range affinity.Preferred {
		at := fmt.Sprintf("%spreferredDuringSchedulingIgnoredDuringExecution[%d].preference", path, i)
		selector, err := compileLabels(preferred.Preference.LabelSelector, at)
		if err != nil {
			return err
		}
		p.preferred = append(p.preferred, preference{
			weight: float64(preferred.Weight), labels: selector, sorter: preferred.Preference.PropertySorter,
		})
	}
	return nil
}

// NamesNobody reports whether the policy is PickFixed and has no names.
func (p *Policy) NamesNobody() bool { return p.kind == placement.PickFixed && len(p.names) == 0 }

// PicksNobody reports whether the policy requests no member, for example after scaling to zero.
func (p *Policy) PicksNobody() bool {
	return p.kind == placement.PickN && p.number == 0 || p.kind == placement.PickFixed && len(p.names) == 0
}

// filter returns the reason why a member without the placement may not be picked. It returns the
// zero Obstacle if the member may be picked.
func (p *Policy) filter(m *Member) Obstacle {
	if obstacle := p.filterName(m); obstacle != (Obstacle{}) {
		return obstacle
	}
	if !m.Admits(p.namespace) {
		return Obstacle{reasons.NamespaceNotAdmitted,
			fmt.Sprintf("it accepts no ResourcePlacement of namespace %s: to allow it, set the annotation %s=%[1]s on the member, or on its "+
				"workspace", p.namespace, AnnotationFrom)}
	}
	if m.Obstacle != (Obstacle{}) {
		return m.Obstacle
	}
	if p.namespace != "" && m.lacks(p.namespace) {
		return Obstacle{reasons.NamespaceNotFound, fmt.Sprintf("it has no namespace %s, which a ResourcePlacement does not bring: "+
			"place the Namespace there with a ClusterResourcePlacement, for example with selectionScope NamespaceOnly", p.namespace)}
	}
	if p.kind == placement.PickFixed {
		return Obstacle{}
	}
	if why := misses(p.required, m); why != "" {
		return Obstacle{reasons.AffinityNotMatched, why}
	}
	for _, taint := range m.Taints {
		if !slices.ContainsFunc(p.tolerations, func(t placement.Toleration) bool { return membership.Tolerates(t, taint) }) {
			return Obstacle{reasons.TaintNotTolerated,
				fmt.Sprintf("it has the taint %s, which spec.policy.tolerations does not tolerate", membership.TaintText(taint))}
		}
	}
	for _, c := range p.spread {
		if _, has := m.Labels[c.key]; c.strict && !has {
			return Obstacle{reasons.TopologySpreadNotSatisfied, fmt.Sprintf("it has no label %s to be spread over", c.key)}
		}
	}
	return Obstacle{}
}

// filterName returns an Obstacle if a policy with names does not name the member.
func (p *Policy) filterName(m *Member) Obstacle {
	if p.kind == placement.PickFixed && !slices.Contains(p.names, m.Name) {
		return Obstacle{reasons.NotNamed, "spec.policy.clusterNames does not name it"}
	}
	return Obstacle{}
}

// filterBound returns the reason why a member must lose the placement. A change of the policy may
// be a reason; a change of the member or a missing property is none.
func (p *Policy) filterBound(m *Member, policyChanged bool) Obstacle {
	if p.kind != placement.PickFixed && policyChanged && !mayMeet(p.required, m) {
		if why := misses(p.required, m); why != "" {
			return Obstacle{reasons.AffinityNotMatched, why}
		}
	}
	return p.filterName(m)
}

// AffectedBy reports whether a change of a member can change the picks of the policy, or its
// reason for the member.
func (p *Policy) AffectedBy(before, after *Member) bool {
	if before.Leaving != after.Leaving || before.Paused != after.Paused || before.Quarantined != after.Quarantined ||
		p.filter(before) != p.filter(after) || misses(p.required, before) != misses(p.required, after) {
		return true
	}
	return p.kind == placement.PickN &&
		(slices.ContainsFunc(p.spread, func(c constraint) bool { return before.Labels[c.key] != after.Labels[c.key] }) ||
			slices.ContainsFunc(p.preferred, func(preferred preference) bool { return preferred.value(before) != preferred.value(after) }))
}
