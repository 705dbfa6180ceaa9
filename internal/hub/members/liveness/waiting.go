package liveness

import "time"

// Waiting describes an agent with the credential of a member; it waits because another agent sends
// heartbeats. Waiter and Holder are the two agents' own names.
type Waiting struct {
	Waiter, Holder string
	// Since and Last are the times of the first and the last annotation of a waiting agent on the
	// Lease. Successive annotations in between are at most a budget apart.
	Since, Last time.Time
}

// Lasts reports whether the wait is at least one budget long; the wait of a rolling update is
// shorter.
func (w Waiting) Lasts(budget time.Duration) bool { return w.Last.Sub(w.Since) >= budget }

// Ends returns the end of the wait, unless the hub sees another annotation before.
func (w Waiting) Ends(budget time.Duration) time.Time { return w.Last.Add(budget) }

// budget returns the longest time without a heartbeat before a member is Lost.
func (m *member) budget() time.Duration { return missedPeriods * m.period }

// Waits notes the annotation of a waiting agent on the Lease of another agent.
func (t *Tracker) Waits(namespace, waiter, holder string) {
	t.mu.Lock()
	m, tracked := t.members[namespace]
	if !tracked {
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
