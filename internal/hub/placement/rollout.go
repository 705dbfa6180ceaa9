package placement

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
)

// target is a member with the placement, now or in the desired state.
type target struct {
	name, namespace string
	// epoch counts the revocations of the member.
	epoch int
	// wanted: the member is picked.
	wanted bool
	// exists: the member has Works of the placement. upToDate: they match the desired ones
	// exactly. works: none of their objects is known to fail. available: it has worked for long
	// enough, as far as this process knows.
	exists, upToDate, works, available bool
	// incomplete: no existing Work is outdated, but some are missing.
	incomplete bool
	// unreachable: no agent would act on Works, so the member counts neither as available nor as
	// unavailable.
	unreachable bool
	// blocked: nothing may be written to the member.
	blocked bool
	// paused: nothing changes on the member, neither by a write nor by a removal.
	paused bool
	// deleting: the Works are being deleted, and nothing can be written before they are gone.
	deleting bool
}

// rolloutPlan is the next step, each list in the order of names.
type rolloutPlan struct {
	// write holds the members to update. remove holds the members to remove the Works from, and
	// waiting the members before their turn.
	write, remove, waiting []target
	// cause is the cause of remove, NotPicked by default.
	cause removal.Cause
	// held: staged update runs control the waiting members.
	held bool
	// recreate holds the members with desired Works deleted by another client.
	recreate []target
	// maxUnavailable limits the unavailable members among the wanted ones.
	maxUnavailable, wanted int
}

// limits returns the number of members a change may make unavailable, and the number of extra
// members with the placement.
func limits(config *placement.RollingUpdateConfig, wanted int) (maxUnavailable, maxSurge int) {
	quarter := intstr.FromString("25%")
	scaled := func(given *intstr.IntOrString) int {
		n, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(given, &quarter), wanted, true)
		if err != nil {
			return 1 // the schema admits only numbers and percentages
		}
		return n
	}
	if config == nil {
		config = &placement.RollingUpdateConfig{}
	}
	return max(scaled(config.MaxUnavailable), 1), scaled(config.MaxSurge)
}

// planRollout decides the next changes. A member with failing objects is changed at once, because
// a change cannot make it unavailable. An unreachable member is not changed: it would get the
// change on its return, together with all other returning members.
func planRollout(targets []target, config *placement.RollingUpdateConfig) rolloutPlan {
	targets = slices.SortedFunc(slices.Values(targets), byName)
	p := rolloutPlan{}
	reachable, existing, available := 0, 0, 0
	for _, t := range targets {
		if t.wanted {
			p.wanted++
		}
		if t.wanted && !t.unreachable {
			reachable++
		}
		if t.exists && !t.unreachable && !t.deleting {
			existing++
		}
		if t.available && !t.unreachable && !t.deleting {
			available++
		}
	}
	var maxSurge int
	p.maxUnavailable, maxSurge = limits(config, p.wanted)
	// disrupt reports whether the workload of a member may become unavailable, and counts it.
	disrupt := func(t target) bool {
		if !t.works || t.unreachable {
			return true
		}
		left := available
		if t.available {
			left--
		}
		if left < reachable-p.maxUnavailable {
			return false
		}
		available = left
		return true
	}
	for _, t := range targets {
		if t.wanted || !t.exists || t.deleting {
			continue
		}
		if !t.paused && disrupt(t) {
			p.remove = append(p.remove, t)
			existing--
		} else {
			p.waiting = append(p.waiting, t)
		}
	}
	for _, t := range targets {
		switch {
		case !t.wanted || t.blocked || t.exists && t.upToDate && !t.deleting:
		case t.deleting || t.paused || t.exists && t.unreachable:
			p.waiting = append(p.waiting, t)
		case !t.exists && existing < p.wanted+maxSurge:
			p.write = append(p.write, t)
			existing++
		case t.exists && disrupt(t):
			p.write = append(p.write, t)
		default:
			p.waiting = append(p.waiting, t)
		}
	}
	return p
}

func byName(a, b target) int { return cmp.Compare(a.name, b.name) }
