package kube

import (
	"testing"
	"time"
)

func TestAReconcileLooksAtTheClockEveryHour(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name      string
		due, want time.Duration
	}{
		{"what is overdue is due at once", -time.Hour, time.Millisecond},
		{"what is due soon is waited for", time.Minute, time.Minute},
		{"what is due in a month is looked at every hour", 30 * 24 * time.Hour, time.Hour},
	} {
		if got := At(now.Add(c.due), now).RequeueAfter; got != c.want {
			t.Errorf("%s: after %s, want %s", c.name, got, c.want)
		}
	}
}
