package bundle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDriftThatSomebodyKeepsCausingIsCorrectedLessAndLessOften(t *testing.T) {
	of, now := &delivery{}, time.Unix(1000, 0)
	var waits []time.Duration
	correct := func() {
		of.countCorrection(now)
		waits = append(waits, of.correctAt.Sub(now))
		now = of.correctAt
	}
	for range 9 {
		correct()
	}
	now = now.Add(calm + time.Second)
	correct()
	want := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second,
		5 * time.Minute, 5 * time.Minute, 5 * time.Minute, 5 * time.Second}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
