package liveness

import "time"

// skewWorthAWrite is by how many seconds a member's clock has to move before that alone is written to its record.
const skewWorthAWrite = 30

// skew is by how much the member's clock is ahead of the API server's. A beat is seen after it was sent, so the larger of the last two is nearer the truth: a
// beat that the hub saw late, because its own connection was gone for a while, changes nothing.
func (m *member) skew() time.Duration { return max(m.skews[0], m.skews[1]) }

// Observation is what the hub knows of a member's agent, with all times by the API server's clock. Until this process has seen a beat, the state is Unknown or Lost and the rest is zero.
type Observation struct {
	State State
	// LastBeat is when the hub saw the last beat, OnlineSince when it saw the first of those by which the member is online; zero if it is not.
	LastBeat, OnlineSince time.Time
	// Source is where the agent beats.
	Source Source
	// ClockSkew is by how many seconds the member's clock is ahead of the API server's.
	ClockSkew *int64
	// Waiting is the agent that waits for the one that beats; nil if this process has seen none, or none for longer than the Budget, which is how long a
	// member may be silent.
	Waiting *Waiting
	Budget  time.Duration
}

// Observe returns what is known of a member.
func (t *Tracker) Observe(namespace string) Observation {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, known := t.members[namespace]
	if !known {
		return Observation{State: Unknown}
	}
	o := Observation{State: m.state, Source: m.source, Budget: m.budget()}
	if m.waiting != nil && t.clock.Now().Before(m.waiting.Ends(m.budget())) {
		o.Waiting = &Waiting{Waiter: m.waiting.Waiter, Holder: m.waiting.Holder, Since: t.server.At(m.waiting.Since), Last: t.server.At(m.waiting.Last)}
	} else {
		m.waiting = nil
	}
	if m.state == Online {
		o.OnlineSince = t.server.At(m.online)
	}
	if !m.lastBeat.IsZero() {
		o.LastBeat = t.server.At(m.lastBeat)
		o.ClockSkew = new(int64(m.skew().Round(time.Second).Seconds()))
	}
	return o
}

// ShownSkew is the skew that a record shows: the observed skew if the record is written anyway or shows one that is far off, else the recorded one.
func ShownSkew(recorded, observed *int64, written bool) *int64 {
	if observed == nil {
		return recorded
	}
	if written || recorded == nil || max(*observed-*recorded, *recorded-*observed) > skewWorthAWrite {
		return observed
	}
	return recorded
}
