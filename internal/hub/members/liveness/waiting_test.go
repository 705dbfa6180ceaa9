package liveness

import (
	"testing"
	"time"
)

func TestAnAgentThatWaitsIsNotedOnceThatLasts(t *testing.T) {
	tracker, changes, step := start()
	tracker.Waits("stranger", "b", "a")
	if got := tracker.Observe("stranger").Waiting; got != nil {
		t.Errorf("of a member that is not tracked it is known that %+v waits", got)
	}
	tracker.Track("a", period, false)
	tracker.Beat("a", InLease, time.Time{})
	next(t, changes)
	began := tracker.clock.Now()
	mark := func(waiter string) {
		tracker.Beat("a", InLease, time.Time{})
		tracker.Waits("a", waiter, "first")
	}
	for i := range 3 {
		mark("second")
		if got := tracker.Observe("a"); got.Waiting == nil || got.Waiting.Lasts(got.Budget) {
			t.Errorf("after %d periods: %+v", i, got.Waiting)
		}
		step(period)
	}
	select {
	case e := <-changes:
		t.Errorf("%s was woken before", e.Object.GetName())
	default:
	}
	mark("second")
	if got := next(t, changes); got != "a" {
		t.Errorf("%s was woken, want a", got)
	}
	got := tracker.Observe("a")
	if want := (Waiting{Waiter: "second", Holder: "first", Since: began, Last: began.Add(3 * period)}); *got.Waiting != want ||
		!want.Lasts(got.Budget) || !want.Ends(got.Budget).Equal(began.Add(6*period)) {
		t.Errorf("got %+v, want %+v", *got.Waiting, want)
	}
	step(period)
	mark("third")
	select {
	case e := <-changes:
		t.Errorf("%s was woken again", e.Object.GetName())
	default:
	}
	for range 3 {
		step(period)
		tracker.Beat("a", InLease, time.Time{})
	}
	if got := tracker.Observe("a").Waiting; got != nil {
		t.Errorf("three periods after the last mark it is known that %+v waits", got)
	}
	mark("second")
	if got := tracker.Observe("a"); got.Waiting == nil || got.Waiting.Lasts(got.Budget) {
		t.Errorf("after a pause it counts from before: %+v", got.Waiting)
	}
}
