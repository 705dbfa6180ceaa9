package liveness

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

const (
	// unmeasured marks an hour without a measured heartbeat.
	unmeasured = math.MaxUint16
	// longestDelay stands for all longer delays, in seconds.
	longestDelay = unmeasured - 1
)

// delays holds the longest delay of a member's heartbeats in each of the last hours, in seconds.
// Each hour has its place by its number since 1970. The zero value measures nothing before seed.
type delays struct {
	newest  int32 // the newest hour since 1970
	seconds [clusterv1beta1.DelayHours]uint16
}

func hourOf(at time.Time) int32 { return int32(at.Unix() / int64(time.Hour/time.Second)) }

// place returns the place of an hour.
func (d *delays) place(hour int32) *uint16 { return &d.seconds[hour%clusterv1beta1.DelayHours] }

// advance makes an hour the newest one. The hours since the former newest one become unmeasured.
func (d *delays) advance(hour int32) {
	for next := max(d.newest, hour-clusterv1beta1.DelayHours) + 1; next <= hour; next++ {
		*d.place(next) = unmeasured
	}
	d.newest = hour
}

// seed begins to measure. It takes the recorded delays of the last hours from the status of the
// membership object, so a new leader continues with them.
func (d *delays) seed(recorded *clusterv1beta1.HeartbeatDelay, now time.Time) {
	if d.newest != 0 {
		return
	}
	d.advance(hourOf(now))
	if recorded == nil {
		return
	}
	for ago, seconds := range recorded.Seconds {
		hour := hourOf(recorded.Hour.Time) - int32(ago)
		if seconds >= 0 && hour <= d.newest && hour > d.newest-clusterv1beta1.DelayHours {
			*d.place(hour) = uint16(min(seconds, longestDelay))
		}
	}
}

// note notes the delay of a heartbeat; an early one has none. The clock of the API server may move
// back. An hour of the last day then keeps its place, and an earlier hour drops all others.
func (d *delays) note(now time.Time, delay time.Duration) {
	hour := hourOf(now)
	switch {
	case d.newest == 0:
		return
	case hour <= d.newest-clusterv1beta1.DelayHours:
		*d = delays{}
		d.advance(hour)
	case hour > d.newest:
		d.advance(hour)
	}
	seconds := uint16(min(max(delay, 0)/time.Second, longestDelay))
	if longest := d.place(hour); *longest == unmeasured || *longest < seconds {
		*longest = seconds
	}
}

// status returns the delays for a membership object, without unmeasured hours at both ends; nil if
// none is left.
func (d *delays) status() *clusterv1beta1.HeartbeatDelay {
	if d.newest == 0 {
		return nil
	}
	var shown clusterv1beta1.HeartbeatDelay
	last := 0
	for hour := d.newest; hour > d.newest-clusterv1beta1.DelayHours; hour-- {
		seconds := int32(*d.place(hour))
		switch {
		case seconds != unmeasured:
			if shown.Seconds == nil {
				shown.Hour = metav1.NewTime(time.Unix(int64(hour)*int64(time.Hour/time.Second), 0))
			}
			shown.Seconds = append(shown.Seconds, seconds)
			last = len(shown.Seconds)
		case shown.Seconds != nil:
			shown.Seconds = append(shown.Seconds, -1)
		}
	}
	if last == 0 {
		return nil
	}
	shown.Seconds = shown.Seconds[:last]
	return &shown
}

// Seed begins to measure the delays of a tracked member's heartbeats, after the recorded ones.
func (t *Tracker) Seed(namespace string, recorded *clusterv1beta1.HeartbeatDelay) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m, tracked := t.members[namespace]; tracked {
		m.delays.seed(recorded, t.server.Now())
	}
}

// measure notes the delay of a heartbeat seen now. The hub cannot know when some heartbeats are
// due: the first one, one of another agent, and one after a change of the period.
func (t *Tracker) measure(m *member, sameAgent bool, now time.Time) {
	if m.state == Online && m.paced && sameAgent {
		m.delays.note(t.server.At(now), now.Sub(m.lastBeat)-m.period)
	}
	m.paced = true
}

// ShownDelay returns the delays for a membership object: the observed ones if the hub writes the
// object anyway, else the recorded ones.
func ShownDelay(recorded, observed *clusterv1beta1.HeartbeatDelay, written bool) *clusterv1beta1.HeartbeatDelay {
	if written && observed != nil {
		return observed
	}
	return recorded
}
