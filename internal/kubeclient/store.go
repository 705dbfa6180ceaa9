package kubeclient

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// Store is a cache.ReflectorStore made of functions. It calls them with the lock, and signals
// changes.
type Store[T any] struct {
	// Changed receives the signals; its buffer is 1.
	Changed chan struct{}
	// Put stores an object and reports whether the store has changed. Drop removes an object, Reset
	// all of them.
	Put   func(T) bool
	Drop  func(T)
	Reset func()
	// Strip reduces each object of a list on reading; nil keeps the objects whole.
	Strip func(T) T
	// InPages reads and strips lists page by page if the server cannot stream them. It needs Strip.
	InPages bool

	sync.Mutex
	// Listed is set once the objects have been listed.
	Listed bool
}

// Notify signals on a channel with a buffer of 1. It wakes the one reader, once for any number of
// changes before it reads.
func Notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// IsListed reports whether the objects have been listed once.
func (s *Store[T]) IsListed() bool {
	s.Lock()
	defer s.Unlock()
	return s.Listed
}

// Change calls a function with the lock, and signals a change.
func (s *Store[T]) Change(change func()) error {
	s.Lock()
	defer s.Unlock()
	change()
	Notify(s.Changed)
	return nil
}

// IsPaged implements paged.
func (s *Store[T]) IsPaged() bool { return s.InPages && s.Strip != nil }

// Transformer implements cache.TransformingStore.
func (s *Store[T]) Transformer() cache.TransformFunc {
	if s.Strip == nil {
		return nil
	}
	return func(obj any) (any, error) {
		if whole, ok := obj.(T); ok {
			return s.Strip(whole), nil
		}
		return obj, nil
	}
}

// Add implements cache.ReflectorStore.
func (s *Store[T]) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *Store[T]) Update(obj any) error {
	s.Lock()
	defer s.Unlock()
	if s.Put(obj.(T)) {
		Notify(s.Changed)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (s *Store[T]) Delete(obj any) error { return s.Change(func() { s.Drop(obj.(T)) }) }

// Replace implements cache.ReflectorStore.
func (s *Store[T]) Replace(list []any, _ string) error {
	return s.Change(func() {
		s.Listed = true
		s.Reset()
		for _, obj := range list {
			s.Put(obj.(T))
		}
	})
}

// Resync implements cache.ReflectorStore.
func (*Store[T]) Resync() error { return nil }
