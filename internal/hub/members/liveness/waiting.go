package liveness

import "time"

// Waiting is an agent that has the credential of a member and waits, because another one beats. Waiter and Holder are what the two say of themselves.
type Waiting struct {
	Waiter, Holder string
	// Since and Last are when the hub saw the first and the last mark of an agent that waits, none of them later than a budget after the one before.
	Since, Last time.Time
}

// Lasts says whether agents have waited for longer than a pod that is being replaced does, given the budget of the member.
func (w Waiting) Lasts(budget time.Duration) bool { return w.Last.Sub(w.Since) >= budget }

// Ends is when there is no agent that waits any more, unless another mark is seen before.
func (w Waiting) Ends(budget time.Duration) time.Time { return w.Last.Add(budget) }

// budget is how long a member may be silent.
func (m *member) budget() time.Duration { return missedPeriods * m.period }

// Waits records that the hub has just seen the mark of an agent that waits for the holder of the Lease.
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
