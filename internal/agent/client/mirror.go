package client

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// Mirror is a copy of one object of a server that a watch keeps up to date.
type Mirror[T Object] struct {
	changed chan struct{}

	mu      sync.Mutex
	object  T
	seen    bool
	failure error
}

// NewMirror makes an empty mirror. It tells of changes on changed, whose buffer is 1, and which several mirrors may share.
func NewMirror[T Object](changed chan struct{}) *Mirror[T] { return &Mirror[T]{changed: changed} }

// FollowOne keeps m equal to the object called name until ctx ends.
func FollowOne[T Object, L runtime.Object](ctx context.Context, m *Mirror[T], resource *Resource[T, L], name string) {
	Follow(ctx, resource, Name(name), m, func(err error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if err != nil || m.failure != nil {
			m.failure = err
			m.notify()
		}
	})
}

// Get is the object as last seen, the zero T if there is none; seen is false until the server has been asked once.
func (m *Mirror[T]) Get() (object T, seen bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.object, m.seen
}

// Failure is why the last attempt to look at the server failed; nil when it succeeded.
func (m *Mirror[T]) Failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failure
}

func (m *Mirror[T]) set(object T) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.object, m.seen, m.failure = object, true, nil
	m.notify()
	return nil
}

func (m *Mirror[T]) notify() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Add implements cache.ReflectorStore.
func (m *Mirror[T]) Add(obj any) error { return m.set(obj.(T)) }

// Update implements cache.ReflectorStore.
func (m *Mirror[T]) Update(obj any) error { return m.set(obj.(T)) }

// Delete implements cache.ReflectorStore.
func (m *Mirror[T]) Delete(any) error {
	var none T
	return m.set(none)
}

// Replace implements cache.ReflectorStore.
func (m *Mirror[T]) Replace(list []any, _ string) error {
	var object T
	if len(list) > 0 {
		object = list[0].(T)
	}
	return m.set(object)
}

// Resync implements cache.ReflectorStore.
func (m *Mirror[T]) Resync() error { return nil }
