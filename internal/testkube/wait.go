package testkube

import (
	"testing"
	"time"
)

// deadline is generous: it ends only failing tests.
const deadline = 5 * time.Minute

// Eventually waits until the check returns no error. It fails the test with the last error after
// the deadline.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	Within(t, deadline, what, check)
}

// Within does the same as Eventually with another deadline.
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
		pause = min(pause*4/3, 400*time.Millisecond) // keeps many waiting tests from using up the machine
	}
}
