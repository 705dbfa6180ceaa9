package scheduling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// Decision reports whether a member is picked.
type Decision struct {
	// Member is nil if the policy names a missing one.
	Member *Member
	Name   string
	Picked bool
	Score  int
	// Reason and Message explain the decision.
	Reason, Message string
}

// Result is the result of a policy.
type Result struct {
	// Decisions in the order of names.
	Decisions []Decision
	// Wanted is the number of members requested by the policy; for PickAll the number picked.
	Wanted int
	// Undecided: the policy has changed, and for a member with the placement it is unknown
	// whether it meets the required terms.
	Undecided bool
}

// Picked returns the decisions for the picked members.
func (r Result) Picked() []Decision {
	var picked []Decision
	for _, d := range r.Decisions {
		if d.Picked {
			picked = append(picked, d)
		}
	}
	return picked
}

// Only returns the result for the members with the placement already: no other member is picked.
func (r Result) Only(bound map[string]bool) Result {
	r.Decisions = slices.DeleteFunc(r.Decisions, func(d Decision) bool { return d.Member == nil || !bound[d.Member.Namespace] })
	r.Wanted = len(r.Picked())
	return r
}

// Pick decides on every member. bound holds the member namespaces with the placement already.
// policyChanged reports whether another policy picked them: required terms then apply to them, too.
func (p *Policy) Pick(members []*Member, bound map[string]bool, policyChanged bool) Result {
	decisions := map[string]*Decision{}
	var candidates, keep []*Member
	undecided := false
	for _, m := range members {
		d := &Decision{Member: m, Name: m.Name}
		decisions[m.Name] = d
		obstacle := p.filter(m)
		if bound[m.Namespace] { // includes a leaving member; its place is filled once it is gone
			lost := p.filterBound(m, policyChanged)
			if lost == (Obstacle{}) {
				undecided = undecided || policyChanged && misses(p.required, m) != "" && mayMeet(p.required, m)
				keep = append(keep, m)
				d.keep(obstacle)
				continue
			}
			obstacle = lost
		}
		if obstacle != (Obstacle{}) {
			d.Reason, d.Message = obstacle.Reason, obstacle.Message
			continue
		}
		candidates = append(candidates, m)
	}
	wanted := len(keep) + len(candidates)
	switch p.kind {
	case placement.PickN:
		p.pickN(decisions, keep, candidates)
		wanted = p.number
	case placement.PickFixed:
		wanted = len(p.names)
		p.missing(decisions)
		fallthrough
	default:
		for _, m := range candidates {
			decisions[m.Name].pick("")
		}
	}
	result := Result{Wanted: wanted, Undecided: undecided}
	for _, d := range decisions {
		result.Decisions = append(result.Decisions, *d)
	}
	slices.SortFunc(result.Decisions, func(a, b Decision) int { return cmp.Compare(a.Name, b.Name) })
	return result
}

// Replaces reports whether as many members would have the placement if one of them lost it: another
// member takes its place.
func (p *Policy) Replaces(members []*Member, bound map[string]bool, lost *Member) bool {
	others, rest := maps.Clone(bound), slices.DeleteFunc(slices.Clone(members), func(m *Member) bool { return m == lost })
	delete(others, lost.Namespace)
	return len(p.Pick(rest, others, false).Picked()) >= len(p.Pick(members, bound, false).Picked())
}

// missing adds a decision for each missing member named by the policy.
func (p *Policy) missing(decisions map[string]*Decision) {
	for _, name := range p.names {
		if decisions[name] == nil {
			decisions[name] = &Decision{Name: name, Reason: reasons.NoSuchMember,
				Message: fmt.Sprintf("there is no MemberCluster, and no Cluster of a workspace that opts in, called %s%s", name,
					p.inWorkspace(name, decisions))}
		}
	}
}

// inWorkspace returns a question with the Cluster whose name lacks its workspace. It is "" unless
// exactly one Cluster has the name and admits the placement.
func (p *Policy) inWorkspace(name string, decisions map[string]*Decision) string {
	var found []string
	for full, d := range decisions {
		if strings.HasSuffix(full, "/"+name) && d.Member != nil && d.Member.Admits(p.namespace) {
			found = append(found, full)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return "; did you mean " + found[0] + "?"
}

func (d *Decision) pick(message string) {
	d.Picked, d.Reason, d.Message = true, reasons.Scheduled, message
}

// keep picks a member with the placement, and notes an obstacle for other members.
func (d *Decision) keep(obstacle Obstacle) {
	if d.pick(""); obstacle != (Obstacle{}) {
		d.Reason, d.Message = reasons.Kept, "picked before and stays so; now it would not be picked: "+obstacle.Message
	}
}

// pickN keeps as many members as it can, and adds the best of the candidates one after another.
func (p *Policy) pickN(decisions map[string]*Decision, keep, candidates []*Member) {
	members := slices.Concat(keep, candidates)
	for i, score := range p.scores(members) {
		decisions[members[i].Name].Score = score
	}
	// Of equals the highest name comes first, as in KubeFleet's scheduler.
	best := func(a, b *Member) int {
		return cmp.Or(cmp.Compare(decisions[b.Name].Score, decisions[a.Name].Score), strings.Compare(b.Name, a.Name))
	}
	// If there are too many, members not picked now lose the placement first.
	slices.SortFunc(keep, func(a, b *Member) int {
		return cmp.Or(strings.Compare(decisions[b.Name].Reason, decisions[a.Name].Reason), best(a, b)) // Scheduled before Kept
	})
	for _, m := range keep[min(p.number, len(keep)):] {
		d := decisions[m.Name]
		d.Picked, d.Reason, d.Message = false, reasons.Outranked,
			fmt.Sprintf("the policy requires %d members, and others have a higher score than its %d", p.number, d.Score)
	}
	keep = keep[:min(p.number, len(keep))]
	slices.SortFunc(candidates, best)
	spread, picked := newSpread(p.spread, keep, candidates, best), len(keep)
	for ; picked < p.number; picked++ {
		m := spread.next()
		if m == nil {
			break
		}
		d := decisions[m.Name]
		d.pick(fmt.Sprintf("score %d", d.Score))
	}
	floors := spread.floors()
	for _, m := range candidates {
		d := decisions[m.Name]
		if d.Picked {
			continue
		}
		d.Reason, d.Message = reasons.Outranked,
			fmt.Sprintf("it qualifies with score %d, but the policy requires %d members, and others already have the placement or a higher "+
				"score", d.Score, p.number)
		if violated := spread.violates(m, floors); picked < p.number {
			d.Reason, d.Message = reasons.TopologySpreadNotSatisfied, violated
		}
	}
}
