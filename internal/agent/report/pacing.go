package report

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// coalesce is the least time between two writes.
	coalesce = 10 * time.Second
	// refreshPeriods is the longest time between two writes, in heartbeat periods. It is at least
	// leastRefresh and at most mostRefresh.
	refreshPeriods = 60
	leastRefresh   = 10 * time.Minute
	mostRefresh    = time.Hour
	// worthwhile is the least change of available resources for a write of its own: a twentieth of the
	// allocatable ones. Otherwise each start or end of a Pod would cost the hub a write.
	worthwhile = 20
)

// change is the urgency of the difference from the last write.
type change int

const (
	// none: nothing differs, or the difference can wait for the next write.
	none change = iota
	// usage: the Pods' requests changed.
	usage
	// changed: the member changed.
	changed
	// urgent: the hub or a user waits for the change.
	urgent
)

// due returns the time of the next write. It is now if there was no write yet or the change is
// urgent. It is coalesce after the last write if the member changed.
//
// It is a heartbeat period after the last write if only the available resources changed, and a
// refresh after it otherwise. kept reports whether the hub still has the last write. The period
// grows with the fleet, so reports without a change of 10,000 members cost three writes a second.
func due(last time.Time, what change, period time.Duration, kept bool) time.Time {
	switch {
	case last.IsZero(), what == urgent:
		return time.Time{}
	case what == changed:
		return last.Add(coalesce)
	case what == usage:
		return last.Add(min(max(period, coalesce), leastRefresh))
	case !kept:
		return last.Add(leastRefresh)
	default:
		return last.Add(refresh(period))
	}
}

// refresh returns the longest time between two writes.
func refresh(period time.Duration) time.Duration {
	return min(max(refreshPeriods*period, leastRefresh), mostRefresh)
}

// usageDiffers reports whether the available amount of any resource changed by a worthwhile part of
// the allocatable amount.
func usageDiffers(allocatable, available, before corev1.ResourceList) bool {
	for name, all := range allocatable {
		by := available[name].DeepCopy()
		by.Sub(before[name])
		if !by.IsZero() && worthwhile*math.Abs(by.AsApproximateFloat64()) >= all.AsApproximateFloat64() {
			return true
		}
	}
	return false
}
