package testkube

import (
	"strconv"
	"testing"
	"time"
)

// WaitedAttribute is the attribute of a test for the seconds of waiting for its turn on a control
// plane. They do not make it a slow test.
const WaitedAttribute = "waited"

// Waited notes the time that a test has waited for its turn.
func Waited(t testing.TB, since time.Time) {
	t.Helper()
	t.Attr(WaitedAttribute, strconv.FormatFloat(time.Since(since).Seconds(), 'f', 2, 64))
}

// Turn waits until no other test uses the control plane of a name alone, and returns it as Start
// does. The test keeps it until it ends.
//
// Between turns, a control plane without a waiting test is stopped, because an idle one costs a
// fiftieth of a processor. The next turn finds all the data of the last one.
func Turn(t testing.TB, name string, flags ...string) Cluster {
	t.Helper()
	return TurnAmong(t, make(chan struct{}, 1), name, flags...)
}

// TurnAmong is Turn for a test that then also waits for one of several places. They limit the
// control planes with a turn at the same time.
func TurnAmong(t testing.TB, places chan struct{}, name string, flags ...string) Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	began := time.Now()
	e := entryOf(name)
	for e.await(); e != entryOf(name); e.await() { // the one before has discarded it
		e.turn.Unlock()
		e = entryOf(name)
	}
	places <- struct{}{}
	Waited(t, began)
	t.Cleanup(func() {
		defer func() { <-places }()
		if e.err == nil && e.waiting.Load() == 0 {
			e.halt()
			e.halted = true
		}
		e.turn.Unlock()
	})
	if e.halted {
		e.halted = false
		if err := e.resume(); err != nil {
			Discard(name)
			t.Fatalf("starting control plane %s again: %v", name, err)
		}
	}
	return Start(t, name, flags...)
}

// await waits for the turn.
func (e *entry) await() {
	e.waiting.Add(1)
	e.turn.Lock()
	e.waiting.Add(-1)
}
