package report

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// coalesce is the least time between two writes.
	coalesce = 10 * time.Second
	// refresh is the longest.
	refresh = 10 * time.Minute
	// worthwhile is the part of what is allocatable, a twentieth, by which what is available has to
	// change for a write of its own: otherwise each Pod that starts or ends would cost the hub one.
	worthwhile = 20
)

// change is how soon the hub should know what differs from the last write.
type change int

const (
	// none: nothing differs, or only what rides with the next write.
	none change = iota
	// usage: Pods request more, or less.
	usage
	// changed: the member is not as it was.
	changed
	// urgent: somebody waits for it.
	urgent
)

// due is when the next write is to be made: at once if there was none yet or somebody waits for it,
// coalesce after the last one if the member changed since, a heartbeat period after it if the
// available resources did, else refresh after it. The period grows with the fleet.
func due(last time.Time, what change, period time.Duration) time.Time {
	switch {
	case last.IsZero(), what == urgent:
		return time.Time{}
	case what == changed:
		return last.Add(coalesce)
	case what == usage:
		return last.Add(min(max(period, coalesce), refresh))
	default:
		return last.Add(refresh)
	}
}

// usageDiffers says whether what is available of any resource changed by a part of it that is
// worthwhile.
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
