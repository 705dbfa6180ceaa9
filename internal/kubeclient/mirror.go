package kubeclient

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/internal/restore"
)

// Mirror is a copy of one object of a server that a watch keeps up to date.
type Mirror[T Object] struct {
	Store[T]

	object  T
	failure error
}

// NewMirror makes an empty mirror, which signals changes on changed. The channel has a buffer of 1,
// and several mirrors may share it.
func NewMirror[T Object](changed chan struct{}) *Mirror[T] {
	m := &Mirror[T]{}
	set := func(object T) bool {
		m.object, m.failure = object, nil
		return true
	}
	var none T
	m.Store = Store[T]{Changed: changed, Put: set, Drop: func(T) { set(none) }, Reset: func() { set(none) }}
	return m
}

// FollowOne keeps m equal to the object called name until ctx ends.
func FollowOne[T Object, L runtime.Object](ctx context.Context, m *Mirror[T], resource *Resource[T, L], name string) {
	Follow(ctx, resource, Name(name), m, m.result)
}

// FollowCustom does so for a custom resource of the server of c: after a break of the connection
// one request asks for all of those whether the server was restored.
func FollowCustom[T Object, L runtime.Object](ctx context.Context, c *Connection, m *Mirror[T], resource *Resource[T, L], name string) {
	var example T
	narrow := func(options *metav1.ListOptions) { options.FieldSelector = Name(name) }
	follow(ctx, c.server, restore.ListWatch(resource, narrow), example, m, m.result)
}

func (m *Mirror[T]) result(err error) {
	m.Lock()
	defer m.Unlock()
	if err != nil || m.failure != nil {
		m.failure = err
		Notify(m.Changed)
	}
}

// Get is the object as last observed, the zero T if there is none; synced is false until the
// server has answered once.
func (m *Mirror[T]) Get() (object T, synced bool) {
	m.Lock()
	defer m.Unlock()
	return m.object, m.Listed
}

// Failure is why the last attempt to list or watch failed; nil when it succeeded.
func (m *Mirror[T]) Failure() error {
	m.Lock()
	defer m.Unlock()
	return m.failure
}
