package testkube

import "testing"

// Turn waits until no other test has the control plane of a name for itself, and returns it as Start does. The test has it until it ends. A control plane that no
// test waits for is halted meanwhile, since one that idles costs a fiftieth of a processor; the next turn finds all that the last one left there.
func Turn(t testing.TB, name string, flags ...string) Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	e := entryOf(name)
	e.waiting.Add(1)
	e.turn.Lock()
	e.waiting.Add(-1)
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
