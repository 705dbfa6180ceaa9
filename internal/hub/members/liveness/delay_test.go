package liveness

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

var noon = time.Date(2026, 1, 2, 12, 30, 0, 0, time.UTC)

// by returns delays with a newest hour before or after noon, as in a status.
func by(hours int, seconds ...int32) *clusterv1beta1.HeartbeatDelay {
	hour := noon.Truncate(time.Hour).Add(time.Duration(hours) * time.Hour)
	return &clusterv1beta1.HeartbeatDelay{Hour: metav1.NewTime(hour), Seconds: seconds}
}

func TestTheLongestDelayOfEachHourIsKept(t *testing.T) {
	type beat struct{ after, late time.Duration }
	const minutes, hours = time.Minute, time.Hour
	full := make([]int32, clusterv1beta1.DelayHours+6)
	for i := range full {
		full[i] = -1
	}
	full[0], full[23], full[24] = 1, 2, 3
	for _, c := range []struct {
		what     string
		recorded *clusterv1beta1.HeartbeatDelay
		beats    []beat
		want     *clusterv1beta1.HeartbeatDelay
	}{
		{"no heartbeat yet", nil, nil, nil},
		{"the longest of an hour, in whole seconds", nil,
			[]beat{{0, 2 * time.Second}, {minutes, 7900 * time.Millisecond}, {2 * minutes, 0}}, by(0, 7)},
		{"an early heartbeat is in time", nil, []beat{{0, -5 * time.Second}}, by(0, 0)},
		{"the next hour begins again", nil, []beat{{0, 9 * time.Second}, {hours, time.Second}}, by(1, 1, 9)},
		{"hours without a heartbeat are a gap", nil, []beat{{0, 9 * time.Second}, {4 * hours, time.Second}}, by(4, 1, -1, -1, -1, 9)},
		{"a day later nothing is left", nil, []beat{{0, 9 * time.Second}, {24 * hours, time.Second}}, by(24, 1)},
		{"weeks later, too", nil, []beat{{0, 9 * time.Second}, {999 * hours, time.Second}}, by(999, 1)},
		{"a very late heartbeat", nil, []beat{{0, 100 * hours}}, by(0, longestDelay)},
		{"the clock moves back by an hour", nil, []beat{{0, 5 * time.Second}, {-hours, 3 * time.Second}, {0, 6 * time.Second}}, by(0, 6, 3)},
		{"the clock was a day ahead", nil, []beat{{0, 5 * time.Second}, {-24 * hours, 3 * time.Second}}, by(-24, 3)},
		{"a new leader continues", by(0, 4, -1, 2), []beat{{0, 3 * time.Second}}, by(0, 4, -1, 2)},
		{"a new leader after some hours", by(-3, 4, 2), []beat{{0, 3 * time.Second}}, by(0, 3, -1, -1, 4, 2)},
		{"a new leader without a heartbeat yet", by(-3, 4, 2), nil, by(-3, 4, 2)},
		{"a new leader after a day", by(-24, 4, 2), nil, nil},
		{"a status from the future", by(1, 4, 2), []beat{{0, 3 * time.Second}}, by(0, 3)},
		{"a status with impossible values", by(0, 1<<30, -1<<30), nil, by(0, longestDelay)},
		{"a status with too many hours", by(0, full...), nil, by(0, full[:24]...)},
		{"a status from the begin of time", &clusterv1beta1.HeartbeatDelay{Seconds: []int32{3}}, nil, nil},
	} {
		var d delays
		d.note(noon, time.Hour) // not seeded yet
		d.seed(c.recorded, noon)
		for _, b := range c.beats {
			d.note(noon.Add(b.after), b.late)
		}
		d.seed(by(0, 99), noon) // only the first counts
		if diff := cmp.Diff(c.want, d.status()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, diff)
		}
	}
}

// TestADelayIsTheTimeAfterTheEndOfThePeriod lets a member send heartbeats through its life.
func TestADelayIsTheTimeAfterTheEndOfThePeriod(t *testing.T) {
	tracker, _, step := start()
	beat := func(after time.Duration, source Source) {
		step(after)
		tracker.Beat("a", source, time.Time{})
	}
	expect := func(what string, seconds ...int32) {
		t.Helper()
		var got []int32
		if delay := tracker.Observe("a").Delay; delay != nil {
			got = delay.Seconds
		}
		if diff := cmp.Diff(seconds, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	tracker.Seed("a", by(0, 9)) // not tracked
	beat(0, InLease)
	beat(2*time.Minute, InLease)
	expect("before the hub knows the period")
	tracker.Track("a", period, false)
	tracker.Seed("a", nil)
	beat(25*time.Second, InLease)
	expect("the first heartbeat of another period")
	beat(period, InLease)
	expect("a heartbeat in time", 0)
	beat(period+4*time.Second, InLease)
	expect("a heartbeat 4 s late", 4)
	beat(period+3*time.Second, InLease)
	expect("a heartbeat 3 s late", 4)
	beat(3*period, InLease)
	expect("a heartbeat that ends a loss", 4)
	beat(period+9*time.Second, InStatus)
	expect("a heartbeat of another agent", 4)
	beat(period+5*time.Second, InStatus)
	expect("the next one of this agent", 5)
	tracker.Track("a", 2*period, false)
	beat(2*period+9*time.Second, InStatus)
	expect("the first heartbeat after a change of the period", 5)
	beat(2*period+6*time.Second, InStatus)
	expect("the next one after it", 6)
	for range 181 { // an hour
		beat(2*period+time.Second, InStatus)
	}
	expect("an hour later", 1, 6)
	tracker.Forget("a")
	tracker.Track("a", period, false)
	tracker.Seed("a", nil)
	expect("a new member of the name")
}

func TestDelaysAreShownWithOtherChangesOnly(t *testing.T) {
	recorded, observed := by(0, 1), by(0, 2)
	for _, c := range []struct {
		observed *clusterv1beta1.HeartbeatDelay
		written  bool
		want     *clusterv1beta1.HeartbeatDelay
	}{{observed, true, observed}, {observed, false, recorded}, {nil, true, recorded}} {
		if got := ShownDelay(recorded, c.observed, c.written); got != c.want {
			t.Errorf("observed %v, written %t: got %v, want %v", c.observed, c.written, got, c.want)
		}
	}
}

func TestDelaysNeedLittleMemory(t *testing.T) {
	if size := unsafe.Sizeof(delays{}); size > 52 {
		t.Errorf("the delays of a member need %d bytes", size)
	}
	tracker, _, _ := start()
	for i := range 100 {
		tracker.Track(fmt.Sprint(i), period, false)
		tracker.Seed(fmt.Sprint(i), nil)
		tracker.Beat(fmt.Sprint(i), InLease, time.Time{})
	}
	if allocations := testing.AllocsPerRun(100, func() { tracker.Beat("7", InLease, time.Time{}) }); allocations > 0 {
		t.Errorf("a heartbeat takes %g allocations", allocations)
	}
}
