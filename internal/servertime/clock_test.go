package servertime

import (
	"net/http"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// answer is a server that takes its time and then dates its answer, or does not.
type answer struct {
	clock  *testingclock.FakePassiveClock
	ahead  time.Duration
	takes  time.Duration
	undate bool
}

func (a answer) RoundTrip(*http.Request) (*http.Response, error) {
	response := &http.Response{Header: http.Header{}, Body: http.NoBody}
	if !a.undate {
		response.Header.Set("Date", a.clock.Now().Add(a.ahead).UTC().Format(http.TimeFormat))
	}
	a.clock.SetTime(a.clock.Now().Add(a.takes))
	return response, nil
}

func ask(t *testing.T, clock *Clock, from answer) {
	t.Helper()
	response, err := clock.Wrap(from).RoundTrip(&http.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTheTimeIsThatOfTheServer(t *testing.T) {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC)
	here := testingclock.NewFakePassiveClock(begun)
	clock := New(here)
	for _, c := range []struct {
		name   string
		answer answer
		want   time.Duration // ahead of the machine
	}{
		{"no date", answer{undate: true}, 0},
		{"the same time, in whole seconds", answer{}, 0},
		{"a little behind", answer{ahead: -2 * time.Second}, 0},
		{"an answer that was under way for long", answer{takes: time.Minute}, 0},
		{"an hour ahead", answer{ahead: time.Hour}, time.Hour - 100*time.Millisecond},
		{"the same again changes nothing", answer{ahead: time.Hour + 900*time.Millisecond}, time.Hour - 100*time.Millisecond},
		{"nor does an answer that takes long", answer{ahead: time.Hour, takes: time.Minute}, time.Hour - 100*time.Millisecond},
		{"nor one without a date", answer{undate: true}, time.Hour - 100*time.Millisecond},
		{"the server's clock was set right", answer{}, -100 * time.Millisecond},
		{"an hour behind", answer{ahead: -time.Hour}, -time.Hour - 100*time.Millisecond},
	} {
		c.answer.clock = here
		ask(t, clock, c.answer)
		if got := clock.Now().Sub(here.Now()); got != c.want {
			t.Errorf("%s: the time is %s ahead of the machine's, want %s", c.name, got, c.want)
		}
		if got := clock.Since(begun.Add(c.want)); got != here.Since(begun) {
			t.Errorf("%s: the beginning was %s ago, want %s", c.name, got, here.Since(begun))
		}
	}
}

func TestAWrongClockThatIsSetRightChangesNothing(t *testing.T) {
	here := testingclock.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	clock := New(here)
	ask(t, clock, answer{clock: here, ahead: time.Hour})
	want := clock.Now()
	here.SetTime(here.Now().Add(time.Hour))
	ask(t, clock, answer{clock: here})
	if got := clock.Now(); got.Sub(want).Abs() > time.Second {
		t.Errorf("the time went from %s to %s", want, got)
	}
}
