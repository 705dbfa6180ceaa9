package restore

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
)

// Server is the shared state of several watches of one API server. An answer of the server counts
// until one of the watches breaks, because every restore interrupts the watches.
type Server struct {
	turn chan struct{}

	mu sync.Mutex
	// version is the version reached by the server; empty after a break.
	version string
}

// NewServer returns a Server without an answer.
func NewServer() *Server { return &Server{turn: make(chan struct{}, 1)} }

// enter waits until no other watch queries or begins; done admits the next one.
func (s *Server) enter(ctx context.Context) (done func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hasReached reports whether the server has answered with this version or a later one since the
// last break.
func (s *Server) hasReached(version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	order, err := resourceversion.CompareResourceVersion(s.version, version)
	return err == nil && order >= 0
}

func (s *Server) answered(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

func (s *Server) broke() { s.answered("") }

// until wraps a watch to note its end.
func (s *Server) until(events watch.Interface) *ending {
	return &ending{Interface: events, ended: sync.OnceFunc(s.broke)}
}

// ending is a watch with a noted end: its reader stops it then, or begins another one.
type ending struct {
	watch.Interface
	ended func()
}

// Stop implements watch.Interface.
func (e *ending) Stop() {
	e.ended()
	e.Interface.Stop()
}

// isBroken reports whether the connection broke at the begin of a watch. client-go then returns a
// watch without events.
func isBroken(events watch.Interface) bool {
	return reflect.TypeOf(events) == reflect.TypeOf(watch.NewEmptyWatch())
}
