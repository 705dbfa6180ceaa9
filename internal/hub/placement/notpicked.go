package placement

import (
	"cmp"
	"slices"
	"strings"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxNotPicked limits the unpicked members with a reason in a status. maxMissing limits the
// entries for members requested by a policy but not found.
const maxNotPicked, maxMissing = 20, 100

// obstacles returns the reasons of unpicked members, and of members kept by the placement but not
// picked now.
func (o observed) obstacles(d decision) (obstacles []placement.Obstacle) {
	add := func(n scheduling.Decision, message string) {
		obstacles = append(obstacles, placement.Obstacle{ClusterName: n.Name, Reason: n.Reason, Message: kube.Clip(message, maxMessage)})
	}
	for _, n := range o.notPicked(d) {
		message := n.Message
		if o.hasWorks(n) && n.Member.Paused {
			message += "; the member is paused or quarantined, and keeps the objects of the placement"
		} else if o.hasWorks(n) {
			message += "; the objects of the placement are being removed from it"
		}
		add(n, message)
	}
	kept := 0
	for _, n := range d.result.Picked() {
		if n.Reason == reasons.Kept && kept < maxNotPicked {
			add(n, n.Message)
			kept++
		}
	}
	slices.SortStableFunc(obstacles, func(a, b placement.Obstacle) int { return cmp.Compare(a.ClusterName, b.ClusterName) })
	return obstacles
}

// missing returns a decision for each member requested by the policy but not picked. If there are
// fewer members than the policy requests, some have no name.
func (o observed) missing(d decision) (missing []scheduling.Decision) {
	short := min(d.result.Wanted-len(d.result.Picked()), maxMissing)
	if short <= 0 {
		return nil
	}
	for _, n := range o.rankNotPicked(d) {
		if len(missing) < short && n.Reason != reasons.NotNamed {
			missing = append(missing, n)
		}
	}
	slices.SortFunc(missing, func(a, b scheduling.Decision) int { return strings.Compare(a.Name, b.Name) })
	for len(missing) < short {
		missing = append(missing, scheduling.Decision{Message: "there are fewer members than the policy requires"})
	}
	return missing
}

func (o observed) hasWorks(d scheduling.Decision) bool {
	return d.Member != nil && o.current[d.Member.Namespace] != nil
}

// notPicked returns some of the unpicked members, sorted by name: members named by the policy,
// and the first of the others.
func (o observed) notPicked(d decision) []scheduling.Decision {
	others := o.rankNotPicked(d)
	named := 0
	for _, n := range others {
		if n.Reason == reasons.NoSuchMember {
			named++
		}
	}
	others = others[:min(max(maxNotPicked, named), len(others))]
	slices.SortFunc(others, func(a, b scheduling.Decision) int { return strings.Compare(a.Name, b.Name) })
	return others
}

// rankNotPicked returns the unpicked members in order. Members before their removal come first,
// then members named by the policy, then members with a passing obstacle. The others follow,
// leaving members late among them. Members not named by PickFixed are omitted.
func (o observed) rankNotPicked(d decision) []scheduling.Decision {
	var others []scheduling.Decision
	for _, n := range d.result.Decisions {
		if !n.Picked && (n.Reason != reasons.NotNamed || o.hasWorks(n)) {
			others = append(others, n)
		}
	}
	// Reasons outside the list come first.
	order := []string{
		reasons.TopologySpreadNotSatisfied, reasons.TaintNotTolerated, reasons.Outranked, reasons.Leaving, reasons.AffinityNotMatched,
	}
	rank := func(n scheduling.Decision) int {
		if o.hasWorks(n) {
			return -2
		}
		return slices.Index(order, n.Reason)
	}
	slices.SortStableFunc(others, func(a, b scheduling.Decision) int { return rank(a) - rank(b) })
	return others
}
