package liveness

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/muster-fleet/muster/internal/servertime"
)

const period = 10 * time.Second

// start returns a tracker on a fake clock and a function that moves the clock and lets the
// tracker look at it.
func start() (tracker *Tracker, changes <-chan event.GenericEvent, step func(time.Duration)) {
	fake := testingclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	tracker = New(fake, servertime.New(fake), logr.Discard())
	return tracker, tracker.Subscribe(), func(d time.Duration) { fake.Step(d); tracker.tick() }
}

func TestStartWakesAtTheNearestDeadline(t *testing.T) {
	tracker := New(clock.RealClock{}, servertime.New(clock.RealClock{}), logr.Discard())
	changes := tracker.Subscribe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- tracker.Start(ctx) }()
	tracker.Track("later", time.Hour, false)
	tracker.Track("soon", time.Millisecond, false)
	if got := next(t, changes); got != "soon" {
		t.Errorf("%s was announced, want soon", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func next(t *testing.T, changes <-chan event.GenericEvent) string {
	t.Helper()
	select {
	case e := <-changes:
		return e.Object.GetName()
	case <-time.After(30 * time.Second):
		t.Fatal("no change was announced")
		return ""
	}
}

func expect(t *testing.T, tracker *Tracker, namespace string, want State) {
	t.Helper()
	if got := tracker.Observe(namespace).State; got != want {
		t.Errorf("%s is %s, want %s", namespace, got, want)
	}
}

func TestSilentMemberIsLostAfterThreePeriodsAndOneBeatBringsItBack(t *testing.T) {
	tracker, changes, step := start()
	tracker.Track("a", period, false)
	tracker.Beat("a", InLease, time.Time{})
	if got := next(t, changes); got != "a" {
		t.Fatalf("%s changed, want a", got)
	}
	expect(t, tracker, "a", Online)
	step(3*period - time.Second)
	expect(t, tracker, "a", Online)
	step(time.Second)
	next(t, changes)
	expect(t, tracker, "a", Lost)
	tracker.Beat("a", InLease, time.Time{})
	next(t, changes)
	expect(t, tracker, "a", Online)
}

func TestAfterARestartNobodyIsLostBeforeAFullBudget(t *testing.T) {
	tracker, changes, step := start()
	tracker.Track("a", period, false)
	expect(t, tracker, "a", Unknown)
	step(3*period - time.Second)
	expect(t, tracker, "a", Unknown)
	step(time.Second)
	next(t, changes)
	expect(t, tracker, "a", Lost)
}

func TestAfterARestartALostMemberStaysLostUntilItBeats(t *testing.T) {
	tracker, changes, step := start()
	tracker.Track("a", period, true)
	step(time.Hour)
	expect(t, tracker, "a", Lost)
	tracker.Beat("a", InLease, time.Time{})
	next(t, changes)
	expect(t, tracker, "a", Online)
}

func TestALongerPeriodPostponesTheDeadline(t *testing.T) {
	tracker, changes, step := start()
	tracker.Track("a", period, false)
	tracker.Beat("a", InLease, time.Time{})
	next(t, changes)
	tracker.Track("a", 6*period, false)
	step(17 * period)
	expect(t, tracker, "a", Online)
	step(period)
	next(t, changes)
	expect(t, tracker, "a", Lost)
}

func TestAForgottenMemberIsNeverAnnounced(t *testing.T) {
	tracker, changes, step := start()
	tracker.Track("a", period, false)
	tracker.Track("b", 2*period, false)
	tracker.Forget("a")
	step(6 * period)
	if got := next(t, changes); got != "b" {
		t.Errorf("%s was announced, want only b", got)
	}
}

func TestManySilentAtOnceAreLostAtABoundedRateAndABeatBeforeTheTurnSaves(t *testing.T) {
	tracker, changes, step := start()
	const members = 250
	for i := range members {
		tracker.Track(fmt.Sprintf("m-%d", i), period, false)
	}
	lost := func() (count int) {
		for range len(changes) {
			<-changes
			count++
		}
		return count
	}
	step(3 * period)
	if got := lost(); got != maxLostAtOnce || !tracker.ManyLost() {
		t.Fatalf("%d were lost at once (mass expiry %t), want %d", got, tracker.ManyLost(), maxLostAtOnce)
	}
	step(lostPause / 2)
	if got := lost(); got != 0 {
		t.Fatalf("%d were lost during the pause", got)
	}
	saved := 0
	for i := range members {
		if state := tracker.Observe(fmt.Sprintf("m-%d", i)).State; state != Lost && saved < 100 {
			tracker.Beat(fmt.Sprintf("m-%d", i), InLease, time.Time{})
			saved++
		}
	}
	lost() // those that came online
	step(lostPause)
	if got := lost(); got != members-maxLostAtOnce-saved {
		t.Errorf("then %d were lost, want %d", got, members-maxLostAtOnce-saved)
	}
	step(time.Second)
	step(2 * time.Minute)
	if tracker.ManyLost() {
		t.Error("a mass expiry lasts for ever")
	}
}

func TestClockSkewIsWhatTheBeatsShowAndLosesNobody(t *testing.T) {
	tracker, changes, step := start()
	tracker.Track("a", period, false)
	if got := tracker.Observe("a").ClockSkew; got != nil {
		t.Errorf("before the first beat the skew is %d s", *got)
	}
	for _, c := range []struct {
		name  string
		ahead time.Duration
		want  int64
	}{
		{"an hour ahead", time.Hour, 3600},
		{"still an hour ahead", time.Hour, 3600},
		{"a beat that the hub sees late changes nothing", time.Hour - 50*time.Second, 3600},
		{"set right, the larger of the last two counts", 0, 3550},
		{"until the next beat", 0, 0},
		{"set ahead it is shown at once", time.Minute + 400*time.Millisecond, 60},
		{"a member that is behind", -time.Hour, 60},
		{"is shown as such", -time.Hour, -3600},
	} {
		step(period)
		tracker.Beat("a", InLease, tracker.clock.Now().Add(c.ahead))
		if got := tracker.Observe("a").ClockSkew; got == nil || *got != c.want {
			t.Errorf("%s: the skew is %v s, want %d", c.name, got, c.want)
		}
		expect(t, tracker, "a", Online)
	}
	next(t, changes)
	step(3 * period)
	expect(t, tracker, "a", Lost)
	tracker.Beat("a", InLease, tracker.clock.Now().Add(-2*time.Hour))
	if got := tracker.Observe("a").ClockSkew; *got != -7200 {
		t.Errorf("after it was lost the skew is %d s, want that of the beat that brought it back", *got)
	}
}

func TestShownSkewMovesWithOtherWritesOrByALot(t *testing.T) {
	for _, c := range []struct {
		name               string
		recorded, observed *int64
		written            bool
		want               *int64
	}{
		{"what is not known is not shown", nil, nil, true, nil},
		{"what a restarted hub does not know yet stays", new(int64(5)), nil, true, new(int64(5))},
		{"the first is shown", nil, new(int64(0)), false, new(int64(0))},
		{"a little is no reason for a write", new(int64(0)), new(int64(-30)), false, new(int64(0))},
		{"but goes along with one", new(int64(0)), new(int64(-30)), true, new(int64(-30))},
		{"a lot is one", new(int64(0)), new(int64(-31)), false, new(int64(-31))},
	} {
		if diff := cmp.Diff(c.want, ShownSkew(c.recorded, c.observed, c.written)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestMetrics(t *testing.T) {
	tracker, _, step := start()
	tracker.Track("a", period, false)
	tracker.Beat("a", InLease, tracker.clock.Now().Add(-time.Hour))
	tracker.Track("b", period, true)
	step(4 * time.Second)
	want := `
# HELP muster_hub_largest_clock_skew_seconds Largest clock difference between an online member and the hub, in seconds.
# TYPE muster_hub_largest_clock_skew_seconds gauge
muster_hub_largest_clock_skew_seconds 3600
# HELP muster_hub_member_transitions_total Members that came online or became Lost since the hub started.
# TYPE muster_hub_member_transitions_total counter
muster_hub_member_transitions_total{to="Lost"} 0
muster_hub_member_transitions_total{to="Online"} 1
# HELP muster_hub_members Members by the state of their agents.
# TYPE muster_hub_members gauge
muster_hub_members{state="Lost"} 1
muster_hub_members{state="Online"} 1
muster_hub_members{state="Unknown"} 0
# HELP muster_hub_oldest_beat_age_seconds Largest time since the last heartbeat of an online member, in seconds.
# TYPE muster_hub_oldest_beat_age_seconds gauge
muster_hub_oldest_beat_age_seconds 4
`
	if err := testutil.CollectAndCompare(tracker, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

type following struct {
	toolscache.ResourceEventHandlerRegistration
	synced bool
}

func (f following) HasSynced() bool { return f.synced }

func TestPeriodGrowsWithTheFleetBetweenTenSecondsAndAMinute(t *testing.T) {
	for _, c := range []struct {
		name     string
		leases   int64
		counting bool
		current  time.Duration
		want     time.Duration
	}{
		{name: "the first member", want: 10 * time.Second},
		{name: "a joining one of few", leases: 200, want: 10 * time.Second},
		{name: "of more", leases: 400, want: 20 * time.Second},
		{name: "of many", leases: 1200, want: time.Minute},
		{name: "of very many", leases: 10_000, want: time.Minute},
		{name: "the fleet has grown", leases: 400, current: 10 * time.Second, want: 20 * time.Second},
		{name: "by a little", leases: 400, current: 16 * time.Second, want: 16 * time.Second},
		{name: "the fleet has shrunk", leases: 100, current: time.Minute, want: 10 * time.Second},
		{name: "a hub that has just begun and has not counted yet", leases: 100, counting: true, current: time.Minute, want: time.Minute},
	} {
		tracker, _, _ := start()
		tracker.leases.Store(c.leases)
		tracker.following = following{synced: !c.counting}
		if got := tracker.Period(c.current); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestShownHeartbeatsAreAsNewAsTheFleetAllows(t *testing.T) {
	tracker, _, _ := start()
	for leases, want := range map[int64]struct{ lease, reported time.Duration }{
		0: {5 * time.Minute, 45 * time.Second}, 600: {5 * time.Minute, 45 * time.Second}, 1200: {10 * time.Minute, time.Minute},
		10_000: {15 * time.Minute, 500 * time.Second}, 50_000: {15 * time.Minute, 15 * time.Minute},
	} {
		tracker.leases.Store(leases)
		if lease, reported := tracker.Refresh(), tracker.RefreshReported(); lease != want.lease || reported != want.reported {
			t.Errorf("%d members: %s, and %s in reports, want %s and %s", leases, lease, reported, want.lease, want.reported)
		}
	}
}

func TestAMemberWhoseLeaseIsGoneIsForgotten(t *testing.T) {
	tracker, changes, step := start()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
	tracker.Track("a", period, false)
	tracker.Beat("a", InLease, time.Time{})
	next(t, changes)
	tracker.Forget("a")
	tracker.Beat("a", InLease, time.Time{}) // on its way while the member left
	next(t, changes)
	tracker.leaseGone(toolscache.DeletedFinalStateUnknown{Obj: lease})
	if got := tracker.Observe("a"); got != (Observation{State: Unknown}) {
		t.Errorf("after the Lease is gone there is %+v", got)
	}
	tracker.Track("b", 20*period, false)
	step(60 * period)
	if got := next(t, changes); got != "b" {
		t.Errorf("%s was announced, want only b", got)
	}
}

func TestAnotherAgentIsKnownByWhereItBeats(t *testing.T) {
	tracker, changes, step := start()
	tracker.Track("a", period, false)
	source := func(want Source) {
		t.Helper()
		if got := tracker.Observe("a").Source; got != want {
			t.Errorf("it beats in %q, want %q", got, want)
		}
	}
	source("")
	tracker.Beat("a", InLease, time.Time{})
	next(t, changes)
	source(InLease)
	tracker.Beat("a", InStatus, time.Time{})
	if got := next(t, changes); got != "a" {
		t.Fatalf("%s changed, want a", got)
	}
	source(InStatus)
	// The Pod that is replaced beats until it has ended.
	tracker.Beat("a", InLease, time.Time{})
	source(InStatus)
	step(overlap)
	tracker.Beat("a", InLease, time.Time{})
	next(t, changes)
	source(InLease)
	expect(t, tracker, "a", Online)
}

func TestAHeartbeatOfTheFormerRecordIsNoneOfTheOneThatWasMadeAnew(t *testing.T) {
	tracker, _, step := start()
	tracker.Beat("a", InLease, time.Now()) // before its record was reconciled
	tracker.SetRecord("a", "former")
	tracker.SetRecord("a", "former")
	step(period / 2)
	if o := tracker.Observe("a"); o.State != Online || o.LastBeat.IsZero() {
		t.Errorf("of its own record it is %+v", o)
	}
	tracker.SetRecord("a", "anew")
	if diff := cmp.Diff(Observation{State: Unknown}, tracker.Observe("a")); diff != "" {
		t.Errorf("of the record that was made anew (-want +got):\n%s", diff)
	}
	tracker.Track("a", period, false)
	tracker.SetRecord("a", "anew")
	tracker.Beat("a", InLease, time.Now())
	expect(t, tracker, "a", Online)
}
