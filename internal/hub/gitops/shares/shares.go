// Package shares divides the places of a program among the workspaces.
//
// Its invariant: a workspace never has more places than its limit, and a waiting object is enqueued
// when a place of its workspace is free.
package shares

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Shares limit the objects of one workspace at work at once. The servers of a tenant that never
// answer then leave a part of the program to all others.
//
// An object without a place holds no worker. It waits in a list, and is enqueued when a place of
// its workspace is free.
type Shares struct {
	limit int

	mu sync.Mutex
	// used counts the places in use by workspace, waiting has the objects without one in their order.
	used    map[string]int
	waiting map[string][]types.NamespacedName
	// woken are the objects enqueued for a free place that they have not taken yet.
	woken map[types.NamespacedName]bool
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New returns shares with a limit for each workspace.
func New(limit int) *Shares {
	return &Shares{
		limit: limit, used: map[string]int{}, waiting: map[string][]types.NamespacedName{}, woken: map[types.NamespacedName]bool{},
	}
}

// Start takes the queue of the controller.
func (s *Shares) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
	return nil
}

// Enter takes a place for an object, and reports whether there was one. Without a place, the object
// waits.
func (s *Shares) Enter(object types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.woken, object)
	s.remove(object)
	if s.used[object.Namespace] >= s.limit {
		s.waiting[object.Namespace] = append(s.waiting[object.Namespace], object)
		return false
	}
	s.used[object.Namespace]++
	return true
}

// Leave gives a place back.
func (s *Shares) Leave(object types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[object.Namespace]--; s.used[object.Namespace] == 0 {
		delete(s.used, object.Namespace)
	}
	s.wake(object.Namespace)
}

// PassOn gives the place to the next object if this one was enqueued for it, and did not take it.
func (s *Shares) PassOn(object types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.woken[object] {
		delete(s.woken, object)
		s.wake(object.Namespace)
	}
}

// wake enqueues the next object of a workspace. The caller holds the lock.
func (s *Shares) wake(workspace string) {
	if len(s.waiting[workspace]) == 0 {
		return
	}
	next := s.waiting[workspace][0]
	s.remove(next)
	s.woken[next] = true
	s.queue.Add(reconcile.Request{NamespacedName: next})
}

// remove takes an object out of the list. The caller holds the lock.
func (s *Shares) remove(object types.NamespacedName) {
	var rest []types.NamespacedName
	for _, other := range s.waiting[object.Namespace] {
		if other != object {
			rest = append(rest, other)
		}
	}
	if len(rest) == 0 {
		delete(s.waiting, object.Namespace)
		return
	}
	s.waiting[object.Namespace] = rest
}
