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
	// quiet keeps what an agent does for a membership that it leaves out of the log and the metrics.
	quiet bool
	// changed wakes the agent's loop when it becomes or ceases to be the one that beats; noted tells of another note.
	changed, noted chan struct{}

	mu     sync.Mutex
	state  State
	reason string
	ready  bool
	// beaten says that a beat was accepted since the state was entered.
	beaten bool
	// beside says of an agent that has joined where its registration with another token stands.
	beside string
}

// enter tells a state and why.
func (s *standing) enter(state State, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(state, reason)
	s.beaten = false
	if state != Joined {
		s.setReady(false)
	}
}

// beat tells that the hub accepted a beat.
func (s *standing) beat(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == Joined && !s.beaten || s.state == Standby {
		s.beaten = true
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

// registering tells how far a registration is: of an agent that has joined beside what it does, else as its state.
func (s *standing) registering(sentence string) {
	s.mu.Lock()
	beside := s.state == Joined || s.state == Standby || s.state == Left
	s.mu.Unlock()
	if beside {
		s.note("this cluster registers with another token: " + sentence)
		return
	}
	s.enter(Joining, sentence)
}

// note tells what is worth to know beside the state; nothing if it is empty.
func (s *standing) note(sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.beside == sentence {
		return
	}
	s.beside = sentence
	if sentence != "" {
		s.log.Info("beside the membership", "state", s.state, "note", sentence)
	}
	poke(s.noted)
}

// noteOf is what note told last.
func (s *standing) noteOf() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beside
}

// change logs what is said for the first time. An attempt that ends as the last one did says nothing new, though the state
// went back and forth.
func (s *standing) change(state State, reason string) {
	from, said := s.state, s.reason
	s.state, s.reason = state, reason
	if (from == Standby) != (state == Standby) && s.changed != nil {
		poke(s.changed)
	}
	if said != reason && !s.quiet {
		s.log.Info("agent state", "from", from, "to", state, "reason", reason)
	}
}

func (s *standing) setReady(ready bool) {
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

// get is for the readiness probe.
func (s *standing) get() (state State, reason string, ready bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason = s.reason
	if s.beside != "" {
		reason += "; " + s.beside
	}
	return s.state, reason + s.caution, s.ready
}
