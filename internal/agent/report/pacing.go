package report

import "time"

const (
	// coalesce is the least time between two writes.
	coalesce = 10 * time.Second
	// refresh is the longest.
	refresh = 10 * time.Minute
)

// due is when the next write is to be made: at once if there was none yet or somebody waits for it, coalesce after the last
// one if something changed since, else refresh after it.
func due(last time.Time, changed, urgent bool) time.Time {
	switch {
	case last.IsZero(), urgent:
		return time.Time{}
	case changed:
		return last.Add(coalesce)
	default:
		return last.Add(refresh)
	}
}
