package testkube

import (
	"testing"
	"time"
)

// deadline is generous: it only ends tests that would fail.
const deadline = 5 * time.Minute

// Eventually waits until the check returns no error, and fails the test with the last
// one if it never does.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	Within(t, deadline, what, check)
}

// Within is Eventually with another deadline.
func Within(t testing.TB, deadline time.Duration, what string, check func() error) {
	t.Helper()
	end, pause := time.Now().Add(deadline), 20*time.Millisecond
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not so after %s: %v", what, deadline, err)
		}
		time.Sleep(pause)
		pause = min(pause*4/3, 400*time.Millisecond) // many tests that wait must not keep the machine busy with that
	}
}
