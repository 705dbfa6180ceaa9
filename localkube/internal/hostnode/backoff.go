package hostnode

import "time"

const (
	firstBackOff = 10 * time.Second
	maxBackOff   = 5 * time.Minute
	// resetAfter is the run time after which a container counts as stable again.
	resetAfter = 10 * time.Minute
)

// backOff is the CrashLoopBackOff of one container: the first restart is
// immediate, then 10 s, doubling to 5 min.
type backOff struct{ last time.Duration }

// next returns the wait before a restart after a run of this length.
func (b *backOff) next(ran time.Duration) time.Duration {
	if ran >= resetAfter {
		b.last = 0
	}
	wait := b.last
	switch {
	case b.last == 0:
		b.last = firstBackOff
	case b.last < maxBackOff:
		b.last = min(2*b.last, maxBackOff)
	}
	return wait
}
