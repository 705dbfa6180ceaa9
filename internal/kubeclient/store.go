package kubeclient

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// Store is a cache.ReflectorStore made of functions, which are called with the lock.
// It signals changes.
type Store[T any] struct {
	// Changed is signalled; its buffer is 1.
	Changed chan struct{}
	// Put stores an object and says whether that changed anything, Drop removes one, Reset removes
	// all.
	Put   func(T) bool
	Drop  func(T)
	Reset func()
	// Strip reduces each object of a list while the list is read; nil keeps them whole.
	Strip func(T) T
	// InPages has lists read, and stripped, page by page where the server cannot stream them. It
	// takes a Strip.
	InPages bool

	sync.Mutex
	// Listed says that the objects have been listed once.
	Listed bool
}

// Notify signals on a channel with a buffer of 1: it wakes the one reader, once for any number of
// changes before that reads.
func Notify(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// IsListed says whether the objects have been listed once.
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
