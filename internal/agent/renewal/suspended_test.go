package renewal

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// TestASuspendedMachineRenewsItsTokenWithinAnHourOfWakingUp: while a machine is suspended its
// timers stand still and the time goes on.
func TestASuspendedMachineRenewsItsTokenWithinAnHourOfWakingUp(t *testing.T) {
	const life = 30 * 24 * time.Hour
	for name, row := range map[string]struct {
		suspended, least, most time.Duration
	}{
		"never suspended":                                {0, 18 * 24 * time.Hour, 22 * 24 * time.Hour},
		"asleep until the renewal is due":                {23 * 24 * time.Hour, 0, time.Hour},
		"asleep for a part of the time":                  {10 * 24 * time.Hour, 8 * 24 * time.Hour, 12 * 24 * time.Hour},
		"set back by an hour, as a clock that was wrong": {-time.Hour, 18 * 24 * time.Hour, 22 * 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asleep atomic.Int64
				now := func() time.Time { return time.Now().Add(time.Duration(asleep.Load())) }
				renewed := make(chan time.Time, 1)
				stored := stores(token(now(), now().Add(life)))
				renewer := Renewer{
					Token:   stored.inUse,
					Request: func(context.Context, time.Duration) (string, error) { return token(now(), now().Add(life)), nil },
					Keep: func(_ context.Context, token string) error {
						stored.keep(token)
						renewed <- time.Now()
						return nil
					},
					Explain: func(err error) string { return err.Error() },
					Now:     now, Clock: clock.RealClock{},
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					renewer.Run(ctx)
				}()
				time.Sleep(90 * time.Minute) // of fake time, so that a timer is under way
				woken := time.Now()
				asleep.Store(int64(row.suspended))
				if after := (<-renewed).Sub(woken); after < row.least || after > row.most {
					t.Errorf("renewed %s after it woke up, want %s to %s", after, row.least, row.most)
				}
				cancel()
				<-done
			})
		})
	}
}
