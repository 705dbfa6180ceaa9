package kubeclient

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/internal/restore"
)

// Mirror is a copy of one object on a server, kept up to date by a watch.
type Mirror[T Object] struct {
	Store[T]

	object  T
	failure error
}

// NewMirror returns an empty mirror. It signals changes on changed, a channel with a buffer of 1.
// Several mirrors may share it.
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

// FollowCustom does the same for a custom resource on the server of c. After a break of the
// connection, one request for all of them checks whether the server was restored.
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

// Get returns the last observed object, the zero T if there is none; synced is false until the
// server has answered once.
func (m *Mirror[T]) Get() (object T, synced bool) {
	m.Lock()
	defer m.Unlock()
	return m.object, m.Listed
}

// Failure returns the error of the last attempt to list or watch; nil if it succeeded.
func (m *Mirror[T]) Failure() error {
	m.Lock()
	defer m.Unlock()
	return m.failure
}
