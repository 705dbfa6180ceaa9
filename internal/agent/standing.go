package agent

import (
	"sync"

	"github.com/go-logr/logr"
)

// standing is where the agent stands, as the readiness probe and the log say it.
type standing struct {
	log logr.Logger
	// caution is said beside everything else.
	caution string

	mu     sync.Mutex
	state  State
	reason string
	ready  bool
}

// enter tells a state and why.
func (s *standing) enter(state State, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(state, reason)
	if state != Joined {
		s.setReady(false)
	}
}

// beat tells that the hub accepted a beat.
func (s *standing) beat(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == Joined && !s.ready || s.state == Standby {
		s.setReady(true)
		s.change(Joined, reason)
	}
}

// say tells something new of an agent that has joined.
func (s *standing) say(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == Joined && s.ready {
		s.change(Joined, reason)
	}
}

// change logs what is said for the first time. An attempt that ends as the last one did says nothing new, though the state
// went back and forth.
func (s *standing) change(state State, reason string) {
	from, said := s.state, s.reason
	s.state, s.reason = state, reason
	if said != reason {
		s.log.Info("agent state", "from", from, "to", state, "reason", reason)
	}
}

func (s *standing) setReady(ready bool) {
	s.ready = ready
	value := 0.0
	if ready {
		value = 1
	}
	joinedGauge.Set(value)
}

// get is for the readiness probe.
func (s *standing) get() (state State, reason string, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.reason + s.caution, s.ready
}
