package agent

import (
	"testing"

	"github.com/go-logr/logr"
)

func TestAnAgentIsReadyWithAnAcceptedBeatOfTheStateThatItIsIn(t *testing.T) {
	s := status{log: logr.Discard()}
	for _, step := range []struct {
		do     func()
		state  State
		reason string
		ready  bool
	}{
		{func() { s.set(Joining, "request clusters/r is Pending") }, Joining, "request clusters/r is Pending", false},
		{func() { s.set(Joined, "sending the first beat") }, Joined, "sending the first beat", false},
		{func() { s.setBeaten("joined as clusters/c") }, Joined, "joined as clusters/c", true},
		{func() { s.set(Waiting, "refused") }, Waiting, "refused", false},
		{func() { s.setBeaten("a late beat") }, Waiting, "refused", false},
	} {
		step.do()
		if state, reason, ready := s.get(); state != step.state || reason != step.reason || ready != step.ready {
			t.Errorf("got %s %q, ready %t, want %s %q, ready %t", state, reason, ready, step.state, step.reason, step.ready)
		}
	}
}
