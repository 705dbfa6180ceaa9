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

// maxNotPicked is how many members that are not picked a status gives a reason for. maxMissing is
// how many entries it has for members that a policy asks for and does not get.
const maxNotPicked, maxMissing = 20, 100

// obstacles say why members are not picked, and why some that keep the placement
// would not be picked now.
func (o observed) obstacles(d decision) (all []placement.Obstacle) {
	add := func(n scheduling.Decision, message string) {
		all = append(all, placement.Obstacle{ClusterName: n.Name, Reason: n.Reason, Message: kube.Clip(message, maxMessage)})
	}
	for _, n := range o.notPicked(d) {
		message := n.Message
		if o.hasWorks(n) {
			message += "; what it has of the placement is being removed"
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
	slices.SortStableFunc(all, func(a, b placement.Obstacle) int { return cmp.Compare(a.ClusterName, b.ClusterName) })
	return all
}

// missing returns a decision for each member that the policy asks for and that is not picked. If
// there are fewer members than the policy asks for, some have no name.
func (o observed) missing(d decision) (all []scheduling.Decision) {
	short := min(d.result.Wanted-len(d.result.Picked()), maxMissing)
	if short <= 0 {
		return nil
	}
	for _, n := range o.rankNotPicked(d) {
		if len(all) < short && n.Reason != reasons.NotNamed {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b scheduling.Decision) int { return strings.Compare(a.Name, b.Name) })
	for len(all) < short {
		all = append(all, scheduling.Decision{Message: "there are fewer members than the policy asks for"})
	}
	return all
}

func (o observed) hasWorks(d scheduling.Decision) bool {
	return d.Member != nil && o.current[d.Member.Namespace] != nil
}

// notPicked returns some of the members that are not picked, in the order of their names: those
// that the policy names, and the first of the others.
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

// rankNotPicked returns the members that are not picked: first those that have yet to lose the
// placement, then those that the policy names, then those with a passing obstacle, then the others,
// those that are leaving late among them. Members that PickFixed does not name are of no interest.
func (o observed) rankNotPicked(d decision) []scheduling.Decision {
	var others []scheduling.Decision
	for _, n := range d.result.Decisions {
		if !n.Picked && (n.Reason != reasons.NotNamed || o.hasWorks(n)) {
			others = append(others, n)
		}
	}
	// Reasons that are not in the list come first.
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
