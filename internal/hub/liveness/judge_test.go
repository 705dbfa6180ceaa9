package liveness

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

const period = 10 * time.Second

// start returns a judge on a fake clock and a function that moves the clock and lets the judge look at it.
func start() (judge *Judge, changes <-chan event.GenericEvent, step func(time.Duration)) {
	fake := testingclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	judge = New(fake, logr.Discard())
	return judge, judge.Subscribe(), func(d time.Duration) { fake.Step(d); judge.tick() }
}

func TestStartWakesAtTheNearestDeadline(t *testing.T) {
	judge := New(clock.RealClock{}, logr.Discard())
	changes := judge.Subscribe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- judge.Start(ctx) }()
	judge.Track("later", time.Hour, false)
	judge.Track("soon", time.Millisecond, false)
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

func expect(t *testing.T, judge *Judge, namespace string, want State) {
	t.Helper()
	if got, _ := judge.State(namespace); got != want {
		t.Errorf("%s is %s, want %s", namespace, got, want)
	}
}

func TestSilentMemberIsLostAfterThreePeriodsAndOneBeatBringsItBack(t *testing.T) {
	judge, changes, step := start()
	judge.Track("a", period, false)
	judge.Beat("a")
	if got := next(t, changes); got != "a" {
		t.Fatalf("%s changed, want a", got)
	}
	expect(t, judge, "a", Online)
	step(3*period - time.Second)
	expect(t, judge, "a", Online)
	step(time.Second)
	next(t, changes)
	expect(t, judge, "a", Lost)
	judge.Beat("a")
	next(t, changes)
	expect(t, judge, "a", Online)
}

func TestAfterARestartNobodyIsLostBeforeAFullBudget(t *testing.T) {
	judge, changes, step := start()
	judge.Track("a", period, false)
	expect(t, judge, "a", Unknown)
	step(3*period - time.Second)
	expect(t, judge, "a", Unknown)
	step(time.Second)
	next(t, changes)
	expect(t, judge, "a", Lost)
}

func TestAfterARestartALostMemberStaysLostUntilItBeats(t *testing.T) {
	judge, changes, step := start()
	judge.Track("a", period, true)
	step(time.Hour)
	expect(t, judge, "a", Lost)
	judge.Beat("a")
	next(t, changes)
	expect(t, judge, "a", Online)
}

func TestALongerPeriodPostponesTheDeadline(t *testing.T) {
	judge, changes, step := start()
	judge.Track("a", period, false)
	judge.Beat("a")
	next(t, changes)
	judge.Track("a", 6*period, false)
	step(17 * period)
	expect(t, judge, "a", Online)
	step(period)
	next(t, changes)
	expect(t, judge, "a", Lost)
}

func TestAForgottenMemberIsNeverAnnounced(t *testing.T) {
	judge, changes, step := start()
	judge.Track("a", period, false)
	judge.Track("b", 2*period, false)
	judge.Forget("a")
	step(6 * period)
	if got := next(t, changes); got != "b" {
		t.Errorf("%s was announced, want only b", got)
	}
}

func TestManySilentAtOnceAreLostAtABoundedRateAndABeatBeforeTheTurnSaves(t *testing.T) {
	judge, changes, step := start()
	const members = 250
	for i := range members {
		judge.Track(fmt.Sprintf("m-%d", i), period, false)
	}
	lost := func() (count int) {
		for range len(changes) {
			<-changes
			count++
		}
		return count
	}
	step(3 * period)
	if got := lost(); got != maxLostAtOnce || !judge.Mass() {
		t.Fatalf("%d were lost at once (mass expiry %t), want %d", got, judge.Mass(), maxLostAtOnce)
	}
	step(lostPause / 2)
	if got := lost(); got != 0 {
		t.Fatalf("%d were lost during the pause", got)
	}
	saved := 0
	for i := range members {
		if state, _ := judge.State(fmt.Sprintf("m-%d", i)); state != Lost && saved < 100 {
			judge.Beat(fmt.Sprintf("m-%d", i))
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
	if judge.Mass() {
		t.Error("a mass expiry lasts for ever")
	}
}

func TestMetrics(t *testing.T) {
	judge, _, step := start()
	judge.Track("a", period, false)
	judge.Beat("a")
	judge.Track("b", period, true)
	step(4 * time.Second)
	want := `
# HELP muster_hub_member_transitions_total How often members came online or were lost since the hub started.
# TYPE muster_hub_member_transitions_total counter
muster_hub_member_transitions_total{to="Lost"} 0
muster_hub_member_transitions_total{to="Online"} 1
# HELP muster_hub_members Members by what the hub knows of their agents.
# TYPE muster_hub_members gauge
muster_hub_members{state="Lost"} 1
muster_hub_members{state="Online"} 1
muster_hub_members{state="Unknown"} 0
# HELP muster_hub_oldest_beat_age_seconds Age of the oldest last beat of a member that is online.
# TYPE muster_hub_oldest_beat_age_seconds gauge
muster_hub_oldest_beat_age_seconds 4
`
	if err := testutil.CollectAndCompare(judge, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestPeriodGrowsWithTheFleetBetweenTenSecondsAndAMinute(t *testing.T) {
	for members, want := range map[int]time.Duration{0: 10 * time.Second, 200: 10 * time.Second, 400: 20 * time.Second, 1200: time.Minute, 10000: time.Minute} {
		if got := Period(members); got != want {
			t.Errorf("%d members: %s, want %s", members, got, want)
		}
	}
}
