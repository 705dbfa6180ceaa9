// Package scheduling picks the members of a placement: filter, score, pick.
//
// It has no client and no clock: the same policy over the same members, of which the same hold the placement already, picks the same. Its
// invariant: who holds the placement is moved only if the policy itself says so, never because another member became better.
package scheduling

import (
	"fmt"
	"slices"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// Policy is a PlacementPolicy that was read once.
type Policy struct {
	kind        placement.PlacementType
	names       []string
	number      int
	required    []term
	preferred   []preference
	spread      []constraint
	tolerations []placement.Toleration
}

// constraint is one TopologySpreadConstraint.
type constraint struct {
	key     string
	maxSkew int
	strict  bool
}

// Compile reads a policy; nil is the policy that picks all. Its error says which field is wrong.
func Compile(p *placement.PlacementPolicy) (*Policy, error) {
	if p == nil {
		return &Policy{kind: placement.PickAll}, nil
	}
	policy := &Policy{kind: p.PlacementType, names: slices.Compact(slices.Sorted(slices.Values(p.ClusterNames))), tolerations: p.Tolerations}
	if policy.kind == "" {
		policy.kind = placement.PickAll
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
		selector, err := compileLabels(preferred.Preference.LabelSelector, fmt.Sprintf("%spreferredDuringSchedulingIgnoredDuringExecution[%d].preference", path, i))
		if err != nil {
			return err
		}
		p.preferred = append(p.preferred, preference{weight: float64(preferred.Weight), labels: selector, sorter: preferred.Preference.PropertySorter})
	}
	return nil
}

// Reasons of decisions, as the Scheduled condition of a member shows them.
const (
	ReasonPicked       = "Scheduled"
	ReasonKept         = "Kept"
	ReasonNotNamed     = "NotNamed"
	ReasonNoSuchMember = "NoSuchMember"
	ReasonNoMatch      = "AffinityNotMatched"
	ReasonTainted      = "TaintNotTolerated"
	ReasonSpread       = "TopologySpreadNotSatisfied"
	ReasonOutranked    = "Outranked"
)

// reject says why a member may not be picked newly; the zero Obstacle if it may.
func (p *Policy) reject(m *Member) Obstacle {
	if p.kind == placement.PickFixed && !slices.Contains(p.names, m.Name) {
		return Obstacle{ReasonNotNamed, "spec.policy.clusterNames does not name it"}
	}
	if m.Obstacle != (Obstacle{}) {
		return m.Obstacle
	}
	if p.kind == placement.PickFixed {
		return Obstacle{}
	}
	if why := misses(p.required, m); why != "" {
		return Obstacle{ReasonNoMatch, why}
	}
	for _, taint := range m.Taints {
		if !slices.ContainsFunc(p.tolerations, func(t placement.Toleration) bool { return tolerates(t, taint.Key, taint.Value, taint.Effect) }) {
			return Obstacle{ReasonTainted, fmt.Sprintf("it has the taint %s=%s:%s, which spec.policy.tolerations does not tolerate", taint.Key, taint.Value, taint.Effect)}
		}
	}
	for _, c := range p.spread {
		if _, has := m.Labels[c.key]; c.strict && !has {
			return Obstacle{ReasonSpread, fmt.Sprintf("it has no label %s to be spread over", c.key)}
		}
	}
	return Obstacle{}
}

// drops says whether a member that holds the placement has to lose it: never because the member changed, but the policy may have.
func (p *Policy) drops(m *Member, policyChanged bool) Obstacle {
	if p.kind == placement.PickFixed {
		if !slices.Contains(p.names, m.Name) {
			return Obstacle{ReasonNotNamed, "spec.policy.clusterNames does not name it"}
		}
		return Obstacle{}
	}
	if policyChanged {
		if why := misses(p.required, m); why != "" {
			return Obstacle{ReasonNoMatch, why}
		}
	}
	return Obstacle{}
}

// Concerns says whether a change of a member can make a difference to what the policy picks, or to what it says of the member.
func (p *Policy) Concerns(before, after *Member) bool {
	if before.Leaving != after.Leaving || p.reject(before) != p.reject(after) {
		return true
	}
	if p.kind != placement.PickN {
		return misses(p.required, before) != misses(p.required, after)
	}
	for _, c := range p.spread {
		if before.Labels[c.key] != after.Labels[c.key] {
			return true
		}
	}
	for _, preferred := range p.preferred {
		if preferred.raw(before) != preferred.raw(after) {
			return true
		}
	}
	return misses(p.required, before) != misses(p.required, after)
}
