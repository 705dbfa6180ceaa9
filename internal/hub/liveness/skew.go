package liveness

import "time"

// skewWorthAWrite is by how many seconds a member's clock has to move before that alone is written to its record.
const skewWorthAWrite = 30

// skew is by how much the member's clock is ahead of the hub's. A beat is seen after it was sent, never before, so the larger of two is
// nearer the truth: one that the hub saw late, after its own connection was gone for a while, changes nothing.
func (m *member) skew() time.Duration { return max(m.skews[0], m.skews[1]) }

// ClockSkew returns by how many seconds a member's clock is ahead of the hub's; nil if there was no beat since this process started.
func (j *Judge) ClockSkew(namespace string) *int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m, known := j.members[namespace]; known && !m.lastBeat.IsZero() {
		return new(int64(m.skew().Round(time.Second).Seconds()))
	}
	return nil
}

// ShownSkew is the skew that a record shows: the one observed if the record is written anyway, or if it is off by much; else the one
// recorded.
func ShownSkew(recorded, observed *int64, written bool) *int64 {
	if observed == nil {
		return recorded
	}
	if written || recorded == nil || max(*observed-*recorded, *recorded-*observed) > skewWorthAWrite {
		return observed
	}
	return recorded
}
