package agent

import (
	"sync"

	"github.com/go-logr/logr"

	"github.com/muster-fleet/muster/internal/kubeclient"
	"github.com/muster-fleet/muster/internal/ui/explain"
)

// status is the state of the agent for the readiness probe, the metrics and the log.
type status struct {
	log logr.Logger
	// caution is part of every reason.
	caution string
	// quiet keeps the states of a former membership out of the log and the metrics.
	quiet bool
	// changed wakes the agent's loop at each change to or from Standby, reportChanged the reporter
	// after a change of the note.
	changed, reportChanged chan struct{}

	mu     sync.Mutex
	state  State
	reason string
	ready  bool
	// beaten is set once a heartbeat was accepted in this state.
	beaten bool
	// note describes the registration of a joined agent with another token.
	note string
	// warning is the hub's warning to the administrators of this cluster.
	warning string
}

// set changes the state, before any accepted heartbeat in it.
func (s *status) set(state State, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(state, reason)
	s.beaten = false
	if state != Joined {
		s.setReady(false)
	}
}

// setBeaten handles an accepted heartbeat.
func (s *status) setBeaten(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == Joined && !s.beaten || s.state == Standby {
		s.beaten = true
		s.setReady(true)
		s.change(Joined, reason)
	}
}

// setReason changes the reason of a joined agent.
func (s *status) setReason(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == Joined && s.ready {
		s.change(Joined, reason)
	}
}

// setRegistering sets the progress of a registration: as the state, or as the note of a joined
// agent.
func (s *status) setRegistering(sentence string) {
	s.mu.Lock()
	beside := s.state == Joined || s.state == Standby || s.state == Left
	s.mu.Unlock()
	if beside {
		s.setNote("this cluster registers with another token: " + sentence)
		return
	}
	s.set(Joining, sentence)
}

// setNote changes the note at the end of the reason; empty for none.
func (s *status) setNote(sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.note == sentence {
		return
	}
	s.note = sentence
	if sentence != "" {
		s.log.Info("Status changed beside the membership", "state", s.state, "message", sentence)
	}
	kubeclient.Notify(s.reportChanged)
}

// setWarning changes the hub's warning; empty for none.
func (s *status) setWarning(sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.warning == sentence {
		return
	}
	s.warning = sentence
	if !s.quiet {
		s.log.Info("Warning from the hub", "message", sentence)
	}
}

func (s *status) getNote() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note
}

// change sets the state, and logs a new reason. An attempt with the same result as the last one is
// not logged, even if the state changed in between.
func (s *status) change(state State, reason string) {
	from, last := s.state, s.reason
	s.state, s.reason = state, reason
	if s.quiet {
		return
	}
	if (from == Standby) != (state == Standby) {
		kubeclient.Notify(s.changed)
	}
	if last == reason {
		return
	}
	said := []any{"from", from, "to", state, "reason", reason}
	if remedy := explain.AgentRemedy(string(state)); remedy != "" {
		said = append(said, "remedy", remedy)
	}
	s.log.Info("Agent changed state", said...)
}

func (s *status) setReady(ready bool) {
	s.ready = ready
	if s.quiet {
		return
	}
	value := 0.0
	if ready {
		value = 1
	}
	joinedGauge.Set(value)
}

// get returns the state for the readiness probe.
func (s *status) get() (state State, reason string, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason = s.reason
	for _, more := range []string{s.note, s.warning} {
		if more != "" {
			reason += "; " + more
		}
	}
	return s.state, reason + s.caution, s.ready
}
