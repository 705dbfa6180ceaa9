package liveness

import (
	"context"
	"testing"
	"time"

	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

const period = 10 * time.Second

// start returns a judge on a fake clock and a function that moves the clock and lets the judge look at it.
func start() (judge *Judge, changes <-chan event.GenericEvent, step func(time.Duration)) {
	fake := testingclock.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	judge = New(fake)
	return judge, judge.Subscribe(), func(d time.Duration) { fake.Step(d); judge.tick() }
}

func TestStartWakesAtTheNearestDeadline(t *testing.T) {
	judge := New(clock.RealClock{})
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
