package liveness

import "time"

// Refresh is how old the heartbeat that a record shows may get while the member is online.
func (t *Tracker) Refresh() time.Duration { return RefreshOf(int(t.leases.Load())) }

// RefreshOf so many members is half a second for each, so that all records together are written about twice a second for that, but at least five minutes
// and at most a quarter of an hour: people read it.
func RefreshOf(members int) time.Duration {
	return min(max(time.Duration(members)*500*time.Millisecond, 5*time.Minute), 15*time.Minute)
}

// RefreshReported is how old the shown heartbeat of a member may get whose agent, KubeFleet's, beats in its report. KubeFleet's hub shows each beat, and
// so does this one, but for the whole fleet at most twenty times a second. Agents beat once a minute; this is a little less.
func (t *Tracker) RefreshReported() time.Duration {
	return min(max(time.Duration(t.leases.Load())*50*time.Millisecond, 45*time.Second), 15*time.Minute)
}

// PeriodOf so many members is 50 ms times their number, so that together they write at most twenty times a second, but at least 10 s and at most
// a minute.
func PeriodOf(members int) time.Duration {
	return min(max(time.Duration(members)*50*time.Millisecond, 10*time.Second), time.Minute)
}
