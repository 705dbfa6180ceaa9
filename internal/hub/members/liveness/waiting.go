package liveness

import "time"

// Waiting describes an agent that has the credential of a member and waits, because another agent
// sends heartbeats. Waiter and Holder are the names that the two agents give themselves.
type Waiting struct {
	Waiter, Holder string
	// Since and Last are the times of the first and the last mark of a waiting agent. No two marks are
	// more than a budget apart.
	Since, Last time.Time
}

// Lasts reports whether agents have waited longer than a Pod under replacement does, given the
// budget of the member.
func (w Waiting) Lasts(budget time.Duration) bool { return w.Last.Sub(w.Since) >= budget }

// Ends returns the time when the wait counts as over, unless the hub sees another mark before.
func (w Waiting) Ends(budget time.Duration) time.Time { return w.Last.Add(budget) }

// budget returns the longest time without a heartbeat for a member that is not Lost.
func (m *member) budget() time.Duration { return missedPeriods * m.period }

// Waits notes that the hub has just seen the mark of an agent that waits for the holder of the
// Lease.
func (t *Tracker) Waits(namespace, waiter, holder string) {
	t.mu.Lock()
	m, known := t.members[namespace]
	if !known {
		t.mu.Unlock()
		return
	}
	now, lasted := t.clock.Now(), false
	if m.waiting == nil || !now.Before(m.waiting.Ends(m.budget())) {
		m.waiting = &Waiting{Since: now}
	} else {
		lasted = m.waiting.Lasts(m.budget())
	}
	m.waiting.Waiter, m.waiting.Holder, m.waiting.Last = waiter, holder, now
	lasts := m.waiting.Lasts(m.budget())
	t.mu.Unlock()
	if lasts && !lasted {
		t.notify(namespace)
	}
}
