package liveness

import (
	"time"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// skewWorthAWrite is in seconds: a larger change of a clock skew alone justifies a write to the
// membership object.
const skewWorthAWrite = 30

// skew returns the lead of the member's clock over the API server's clock. A delayed heartbeat
// makes its value too small, so skew returns the larger of the last two. A single late heartbeat,
// for example after a gap in the hub's own connection, then has no effect.
func (m *member) skew() time.Duration { return max(m.skews[0], m.skews[1]) }

// Observation is the hub's knowledge of a member's agent, with all times by the API server's clock.
// Before the first heartbeat in this process, State is Unknown or Lost, and LastBeat, OnlineSince,
// Source and ClockSkew are zero.
type Observation struct {
	State State
	// LastBeat is the time of the last heartbeat. OnlineSince is the time of the first heartbeat
	// since the member came online.
	LastBeat, OnlineSince time.Time
	// Source is the place of the agent's heartbeats: a Lease or a status.
	Source Source
	// ClockSkew is the lead of the member's clock over the API server's clock, in seconds.
	ClockSkew *int64
	// Waiting is the agent waiting for the active one; nil if this process has seen none within the
	// Budget. Budget is the longest time without a heartbeat before a member is Lost.
	Waiting *Waiting
	Budget  time.Duration
	// Delay has the longest delays of the heartbeats by hour; nil without any.
	Delay *clusterv1beta1.HeartbeatDelay
	// Tracked is the time when this process began to watch the member.
	Tracked time.Time
}

// Observe returns the current observation of a member.
func (t *Tracker) Observe(namespace string) Observation {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, tracked := t.members[namespace]
	if !tracked {
		return Observation{State: Unknown}
	}
	o := Observation{State: m.state, Source: m.source, Budget: m.budget(), Tracked: t.server.At(m.tracked), Delay: m.delays.status()}
	if m.waiting != nil && t.clock.Now().Before(m.waiting.Ends(m.budget())) {
		o.Waiting = &Waiting{
			Waiter: m.waiting.Waiter, Holder: m.waiting.Holder, Since: t.server.At(m.waiting.Since), Last: t.server.At(m.waiting.Last),
		}
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

// ShownSkew returns the clock skew for a membership object. The result is the observed skew if the
// hub writes the object anyway or the recorded one is far off, else the recorded skew.
func ShownSkew(recorded, observed *int64, written bool) *int64 {
	if observed == nil {
		return recorded
	}
	if written || recorded == nil || max(*observed-*recorded, *recorded-*observed) > skewWorthAWrite {
		return observed
	}
	return recorded
}
