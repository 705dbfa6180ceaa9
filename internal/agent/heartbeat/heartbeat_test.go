package heartbeat

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/utils/clock"
)

// lease records beats and answers as the test says.
type lease struct {
	beats []time.Duration
	start time.Time
	fail  func() error
}

func run(t *testing.T, l *lease, period time.Duration, periods chan time.Duration, d time.Duration) (log []string) {
	t.Helper()
	sink := funcr.New(func(_, line string) { log = append(log, line) }, funcr.Options{})
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), logr.New(sink.GetSink())))
	l.start = time.Now()
	var current atomic.Int64
	current.Store(int64(period))
	changed := make(chan struct{})
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case p := <-periods:
				current.Store(int64(p))
				changed <- struct{}{}
			}
		}
	}()
	beating := Heartbeat{
		Beat: func(_ context.Context, now time.Time, _ time.Duration) error {
			l.beats = append(l.beats, now.Sub(l.start))
			if l.fail != nil {
				return l.fail()
			}
			return nil
		},
		Period: func() time.Duration { return time.Duration(current.Load()) }, PeriodChanged: changed,
		Result: func(error) {}, Explain: func(err error) string { return err.Error() }, Clock: clock.RealClock{},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		beating.Run(ctx)
	}()
	time.Sleep(d)
	cancel()
	<-done
	return log
}

func TestBeatsAtOnceAndThenEveryPeriodWithFivePercentJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease
		log := run(t, &l, time.Minute, nil, time.Hour)
		if len(l.beats) < 57 || len(l.beats) > 64 || l.beats[0] != 0 {
			t.Errorf("%d beats in an hour, the first after %s", len(l.beats), l.beats[0])
		}
		for i := 1; i < len(l.beats); i++ {
			if gap := l.beats[i] - l.beats[i-1]; gap < 57*time.Second || gap > 63*time.Second {
				t.Errorf("beat %d came after %s", i, gap)
			}
		}
		if len(log) != 0 {
			t.Errorf("healthy beats are logged: %v", log)
		}
	})
}

func TestFailedBeatIsRepeatedWithinThePeriodAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 4
		l := lease{fail: func() error {
			if failures--; failures < 0 {
				return nil
			}
			return errors.New("the hub is away")
		}}
		log := run(t, &l, time.Minute, nil, 50*time.Second)
		if len(l.beats) != 5 || l.beats[4] > 25*time.Second {
			t.Errorf("beats at %v, want 5 within 25 s", l.beats)
		}
		if len(log) != 2 {
			t.Errorf("want one line for the failure and one for its end: %v", log)
		}
	})
}

func TestTheLogNamesALaterCauseOfAFailedBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := []string{"broken connection", "no answer", "broken connection", "no answer"}
		l := lease{fail: func() error {
			if len(causes) == 0 {
				return nil
			}
			cause := causes[0]
			causes = causes[1:]
			return errors.New(cause)
		}}
		log := strings.Join(run(t, &l, time.Minute, nil, 50*time.Second), "\n")
		if strings.Count(log, "broken connection") != 1 || strings.Count(log, "no answer") != 1 || strings.Count(log, "accepted again") != 1 {
			t.Errorf("want one line for each cause and one for the end:\n%s", log)
		}
	})
}

func TestBackOffNeverExceedsThePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lease{fail: func() error { return errors.New("no") }}
		run(t, &l, 2*time.Second, nil, time.Minute)
		if len(l.beats) < 27 {
			t.Errorf("%d beats in a minute of failures, want about 30", len(l.beats))
		}
	})
}

func TestNewPeriodHoldsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease
		periods := make(chan time.Duration)
		go func() {
			time.Sleep(30 * time.Second)
			periods <- 10 * time.Second
		}()
		run(t, &l, 10*time.Minute, periods, 45*time.Second)
		// The period has passed already when the heartbeat is woken, so a beat is due at once.
		if len(l.beats) != 3 || l.beats[1] != 30*time.Second {
			t.Errorf("beats at %v, want them at 0, 30 s and about 40 s", l.beats)
		}
	})
}

func TestNoBeatsWhileThePeriodIsZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lease
		periods := make(chan time.Duration)
		go func() {
			time.Sleep(15 * time.Second)
			periods <- 0
			time.Sleep(time.Hour)
			periods <- 10 * time.Minute
		}()
		run(t, &l, 10*time.Second, periods, time.Hour+time.Minute)
		if len(l.beats) != 3 || l.beats[2] != time.Hour+15*time.Second {
			t.Errorf("beats at %v, want them at 0, 10 s, and when there is a period again", l.beats)
		}
	})
}
