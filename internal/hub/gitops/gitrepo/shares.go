package gitrepo

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// shares limit the servers and the commits of one workspace at work at once. The servers of a
// tenant that never answer then leave a part of the program to all others.
//
// A GitRepo without a place holds no worker. It waits in a list, and is enqueued when a place of
// its workspace is free.
type shares struct {
	limit int

	mu sync.Mutex
	// used counts the places in use by workspace, waiting has the GitRepos without one in their order.
	used    map[string]int
	waiting map[string][]types.NamespacedName
	// woken are the GitRepos enqueued for a free place that they have not taken yet.
	woken map[types.NamespacedName]bool
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newShares(limit int) *shares {
	return &shares{
		limit: limit, used: map[string]int{}, waiting: map[string][]types.NamespacedName{}, woken: map[types.NamespacedName]bool{},
	}
}

// start takes the queue of the controller.
func (s *shares) start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = queue
	return nil
}

// enter takes a place for a GitRepo, and reports whether there was one. Without a place, the
// GitRepo waits.
func (s *shares) enter(repo types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.woken, repo)
	s.remove(repo)
	if s.used[repo.Namespace] >= s.limit {
		s.waiting[repo.Namespace] = append(s.waiting[repo.Namespace], repo)
		return false
	}
	s.used[repo.Namespace]++
	return true
}

// leave gives a place back.
func (s *shares) leave(repo types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[repo.Namespace]--; s.used[repo.Namespace] == 0 {
		delete(s.used, repo.Namespace)
	}
	s.wake(repo.Namespace)
}

// passOn gives the place to the next GitRepo if this one was enqueued for it, and did not take it.
func (s *shares) passOn(repo types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.woken[repo] {
		delete(s.woken, repo)
		s.wake(repo.Namespace)
	}
}

// wake enqueues the next GitRepo of a workspace. The caller holds the lock.
func (s *shares) wake(workspace string) {
	if len(s.waiting[workspace]) == 0 {
		return
	}
	next := s.waiting[workspace][0]
	s.remove(next)
	s.woken[next] = true
	s.queue.Add(reconcile.Request{NamespacedName: next})
}

// remove takes a GitRepo out of the list. The caller holds the lock.
func (s *shares) remove(repo types.NamespacedName) {
	var rest []types.NamespacedName
	for _, other := range s.waiting[repo.Namespace] {
		if other != repo {
			rest = append(rest, other)
		}
	}
	if len(rest) == 0 {
		delete(s.waiting, repo.Namespace)
		return
	}
	s.waiting[repo.Namespace] = rest
}
