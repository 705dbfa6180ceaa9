package testkube

import (
	"strconv"
	"testing"
	"time"
)

// WaitedAttribute is the attribute of a test for how many seconds it has waited for its turn on a
// control plane: they do not make it a slow test.
const WaitedAttribute = "waited"

// Waited records that a test has waited for its turn since a time.
func Waited(t testing.TB, since time.Time) {
	t.Helper()
	t.Attr(WaitedAttribute, strconv.FormatFloat(time.Since(since).Seconds(), 'f', 2, 64))
}

// Turn waits until no other test has the control plane of a name for itself, and returns it as
// Start does. The test has it until it ends. A control plane that no test waits for is halted
// meanwhile, since one that idles costs a fiftieth of a processor; the next turn finds all that the
// last one left there.
func Turn(t testing.TB, name string, flags ...string) Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	e, began := entryOf(name), time.Now()
	e.waiting.Add(1)
	e.turn.Lock()
	e.waiting.Add(-1)
	Waited(t, began)
	t.Cleanup(func() {
		if e.err == nil && e.waiting.Load() == 0 {
			e.halt()
			e.halted = true
		}
		e.turn.Unlock()
	})
	if e.halted {
		e.halted = false
		if err := e.resume(); err != nil {
			t.Fatalf("starting control plane %s again: %v", name, err)
		}
	}
	return Start(t, name, flags...)
}
