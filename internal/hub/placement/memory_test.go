package placement

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

func TestPausesGrowWhileWhatIsSelectedChangesAllTheTime(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	m, key := newMemory(clock), types.NamespacedName{Name: "web"}
	if next := m.nextVersion(key); !next.IsZero() {
		t.Errorf("the first version waits until %s", next)
	}
	paused := func() time.Duration {
		m.acted(key)
		wait := m.nextVersion(key).Sub(clock.Now())
		clock.Step(wait)
		return wait
	}
	for i, want := range []time.Duration{1, 1, 1, 1, 1, 1, 2, 4, 8, 16, 30, 30} {
		if got := paused(); got != want*time.Second {
			t.Errorf("after version %d the pause is %s, want %ds", i+1, got, want)
		}
	}
	clock.Step(rest)
	if got := paused(); got != maxPause {
		t.Errorf("after another version soon after, the pause is %s", got)
	}
	clock.Step(2 * maxPause)
	if got := paused(); got != statusPeriod {
		t.Errorf("after a rest, the pause is %s", got)
	}
}
