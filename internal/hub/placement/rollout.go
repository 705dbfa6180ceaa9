package placement

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// target is a member that has the placement or is to have it.
type target struct {
	name, namespace string
	// wanted: it is picked.
	wanted bool
	// exists: it has Works, of whatever content; current: just those that it should have.
	exists, current bool
	// available: what it has works.
	available bool
	// idle: nobody is there who would act, so that it counts neither way.
	idle bool
	// going: its Works are being deleted, and nothing can be written before they are gone.
	going bool
}

// plan is what is done next, in the order of names.
type plan struct {
	// write are the members that get the resources as they are now, remove those that lose them.
	write, remove []target
	// waiting are those whose turn has not come.
	waiting []target
	// retain are the members of which somebody deleted Works that they are to have.
	retain []target
	// unavailable is how many may be so, of how many.
	unavailable, of int
}

// limits are how many members a change may make unavailable, and how many more than wanted may hold the placement.
func limits(config *placement.RollingUpdateConfig, wanted int) (maxUnavailable, maxSurge int) {
	quarter := intstr.FromString("25%")
	scaled := func(given *intstr.IntOrString) int {
		if given == nil {
			given = &quarter
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(given, wanted, true)
		if err != nil {
			return 1 // the API server has refused what cannot be read
		}
		return n
	}
	if config == nil {
		config = &placement.RollingUpdateConfig{}
	}
	return max(scaled(config.MaxUnavailable), 1), scaled(config.MaxSurge)
}

// roll decides what may be done now. What is not available cannot become so by a change, and is changed at once.
func roll(targets []target, config *placement.RollingUpdateConfig) plan {
	targets = slices.SortedFunc(slices.Values(targets), func(a, b target) int { return cmp.Compare(a.name, b.name) })
	wanted, counted, existing, available := 0, 0, 0, 0
	for _, t := range targets {
		if t.wanted {
			wanted++
		}
		if t.wanted && !t.idle {
			counted++
		}
		if t.exists && !t.idle && !t.going {
			existing++
		}
		if t.available && !t.idle && !t.going {
			available++
		}
	}
	maxUnavailable, maxSurge := limits(config, wanted)
	p := plan{unavailable: maxUnavailable, of: wanted}
	// take says whether what a member has may become unavailable.
	take := func(t target) bool {
		if !t.available || t.idle {
			return true
		}
		if available-1 < counted-maxUnavailable {
			return false
		}
		available--
		return true
	}
	for _, t := range targets {
		if t.wanted || !t.exists || t.going {
			continue
		}
		if take(t) {
			p.remove = append(p.remove, t)
			existing--
		} else {
			p.waiting = append(p.waiting, t)
		}
	}
	for _, t := range targets {
		switch {
		case !t.wanted || t.exists && t.current && !t.going:
		case t.going:
			p.waiting = append(p.waiting, t)
		case !t.exists && existing < wanted+maxSurge:
			p.write = append(p.write, t)
			existing++
		case t.exists && take(t):
			p.write = append(p.write, t)
		default:
			p.waiting = append(p.waiting, t)
		}
	}
	return p
}
