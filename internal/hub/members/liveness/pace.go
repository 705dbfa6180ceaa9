package liveness

import "time"

// Refresh returns the interval of updates of the last heartbeat in the status of an online member.
func (t *Tracker) Refresh() time.Duration { return RefreshOf(int(t.leases.Load())) }

// RefreshOf returns the refresh interval for a number of members: half a second each, at least five
// minutes and at most fifteen. All refreshes together then cost about two writes a second. An
// update every five minutes is enough for readers.
func RefreshOf(members int) time.Duration {
	return min(max(time.Duration(members)*500*time.Millisecond, 5*time.Minute), 15*time.Minute)
}

// RefreshReported returns the maximum age of a shown heartbeat for a KubeFleet agent: these agents
// send heartbeats in their reports. KubeFleet's hub shows each heartbeat. Muster does too, with at
// most twenty writes a second for the whole fleet. Agents send a heartbeat once a minute; 45 s is a
// little less.
func (t *Tracker) RefreshReported() time.Duration {
	return min(max(time.Duration(t.leases.Load())*50*time.Millisecond, 45*time.Second), 15*time.Minute)
}

// LeastPeriod is the shortest period between counted heartbeats. A member is lost after three
// missing ones, so not before 30 s.
const LeastPeriod = 10 * time.Second

// PeriodOf returns the heartbeat period for a number of members: 50 ms each, at least 10 s and at
// most a minute. Together the members write at most twenty times a second.
func PeriodOf(members int) time.Duration {
	return min(max(time.Duration(members)*50*time.Millisecond, LeastPeriod), time.Minute)
}

// periodTolerance: a member keeps its period while it differs from the computed one by at most
// 1/periodTolerance.
const periodTolerance = 4

// Period returns the heartbeat period of a member. current is its present period, or zero for a
// joining member. The period follows the number of Leases. It stays while the number changes little
// or is unknown.
func (t *Tracker) Period(current time.Duration) time.Duration {
	period := PeriodOf(int(t.leases.Load()))
	if current > 0 && (!t.leasesCounted() || (current-period).Abs() <= period/periodTolerance) {
		return current
	}
	return period
}

func (t *Tracker) leasesCounted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.following != nil && t.following.HasSynced()
}
