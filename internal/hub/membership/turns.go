package membership

import (
	"sync"
	"time"
)

// turnEvery lets 50 members a second move: a thousand take 20 s.
const turnEvery = 20 * time.Millisecond

// Turns spreads it over time that members are told another address of the hub, because each of them dials it at once. The zero value is
// ready for use.
type Turns struct {
	mu sync.Mutex
	// last is the turn given last; of has those that were not had yet, by member namespace.
	last time.Time
	of   map[string]time.Time
}

// Take gives a member a turn after all others and says how long it is away.
func (t *Turns) Take(member string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.take(member, now).Sub(now)
}

// Await says how long the turn of a member is away. A member that has none takes one; one whose turn it is has had it.
func (t *Turns) Await(member string, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, taken := t.of[member]
	if !taken {
		at = t.take(member, now)
	}
	if at.After(now) {
		return at.Sub(now)
	}
	delete(t.of, member)
	return 0
}

// Forget drops a member that has left.
func (t *Turns) Forget(member string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, member)
}

func (t *Turns) take(member string, now time.Time) time.Time {
	at := t.last.Add(turnEvery)
	if at.Before(now) {
		at = now
	}
	if t.of == nil {
		t.of = map[string]time.Time{}
	}
	t.last, t.of[member] = at, at
	return at
}
