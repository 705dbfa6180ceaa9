package lifecycle

import (
	"sync"
	"time"
)

// moveInterval lets 50 members a second move: a thousand take 20 s.
const moveInterval = 20 * time.Millisecond

// MoveLimiter limits the rate of moves to another address of the hub, because each member dials the
// new address at once. The zero value is ready for use.
type MoveLimiter struct {
	mu sync.Mutex
	// last is the latest reserved time; reserved holds the future times of the waiting members.
	last     time.Time
	reserved map[string]time.Time
}

// Wait returns the time until a member may move, and reserves a time if it has none. A reservation
// ends when its time comes.
func (l *MoveLimiter) Wait(member string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, known := l.reserved[member]
	if !known {
		at = l.reserve(member, now)
	}
	if at.After(now) {
		return at.Sub(now)
	}
	delete(l.reserved, member)
	return 0
}

// Forget drops a member that has left, or need not move any more.
func (l *MoveLimiter) Forget(member string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, member)
}

func (l *MoveLimiter) reserve(member string, now time.Time) time.Time {
	at := l.last.Add(moveInterval)
	if at.Before(now) {
		at = now
	}
	if l.reserved == nil {
		l.reserved = map[string]time.Time{}
	}
	l.last, l.reserved[member] = at, at
	return at
}
