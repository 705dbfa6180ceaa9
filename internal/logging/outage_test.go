package logging

import (
	"strconv"
	"testing"
)

func TestAnOutageNamesEachCauseOnce(t *testing.T) {
	var o Outage
	if o.End() {
		t.Error("an outage ended that never began")
	}
	for i, want := range []struct {
		cause string
		news  bool
	}{
		{"connection refused", true}, {"connection refused", false}, {"does not answer", true}, {"connection refused", false},
	} {
		if got := o.IsNews(want.cause); got != want.news {
			t.Errorf("failure %d, %q: got %t, want %t", i, want.cause, got, want.news)
		}
	}
	if !o.End() || o.End() {
		t.Error("an outage ends once")
	}
	if !o.IsNews("does not answer") {
		t.Error("the next outage must name the cause again")
	}
}

func TestAnOutageNamesAFewCauses(t *testing.T) {
	var o Outage
	for i := range maxCauses {
		if !o.IsNews(strconv.Itoa(i)) {
			t.Errorf("cause %d is not named", i)
		}
	}
	if o.IsNews("another") {
		t.Errorf("more than %d causes are named", maxCauses)
	}
}
