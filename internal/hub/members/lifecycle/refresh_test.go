package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestARecordIsRefreshedOnceTheHeartbeatItShowsIsOld(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for what, c := range map[string]struct {
		shown, want time.Duration
	}{
		"just written":            {0, time.Hour},
		"by a hub that has ended": {50 * time.Minute, 10 * time.Minute},
		"due, before it beats":    {59*time.Minute + 50*time.Second, time.Minute},
		"overdue":                 {3 * time.Hour, time.Minute},
		"in the future":           {-1000 * time.Hour, time.Hour},
	} {
		o := Observed{RecordedBeat: now.Add(-c.shown), Refresh: time.Hour}
		if got := o.RefreshIn(now); got != c.want {
			t.Errorf("%s: in %s, want %s", what, got, c.want)
		}
	}
}

func TestRecordsThatBeganAtOnceAreRefreshedOneAfterTheOther(t *testing.T) {
	inMinute := map[int]int{}
	for i := range 10_000 {
		uid := types.UID(fmt.Sprintf("7d6b5a49-0000-4000-8000-%012d", i))
		d := spread(time.Hour, uid)
		if d < 45*time.Minute || d > time.Hour || d != spread(time.Hour, uid) {
			t.Fatalf("%s is refreshed after %s, then after %s", uid, d, spread(time.Hour, uid))
		}
		inMinute[int(d.Minutes())]++
	}
	for minute, n := range inMinute {
		if n > 1500 {
			t.Errorf("%d of 10,000 are refreshed in minute %d", n, minute)
		}
	}
}
