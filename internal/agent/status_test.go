package agent

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
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
		{func() { s.set(Joined, "sending the first heartbeat") }, Joined, "sending the first heartbeat", false},
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

func TestTheLogSaysWhatToDoAboutAState(t *testing.T) {
	var lines []string
	s := status{log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})}
	s.set(BadInput, "secret fleet-agent-bootstrap: it has no token")
	s.set(Joining, "request clusters/r is Pending")
	if len(lines) != 2 || !strings.Contains(lines[0], `"remedy"="Correct the object in the message.`) || strings.Contains(lines[1], "remedy") {
		t.Errorf("logged: %q", lines)
	}
}
