package gitrepo

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestAWorkspaceTakesNoMoreThanItsShare(t *testing.T) {
	s := newShares(2)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := s.start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	of := func(workspace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: workspace, Name: name}
	}
	next := func(want types.NamespacedName) {
		t.Helper()
		if queue.Len() != 1 {
			t.Fatalf("%d GitRepos are enqueued, want %s", queue.Len(), want)
		}
		got, _ := queue.Get()
		queue.Done(got)
		if got.NamespacedName != want {
			t.Fatalf("enqueued is %s, want %s", got, want)
		}
	}
	for repo, want := range map[types.NamespacedName]bool{of("x", "a"): true, of("y", "a"): true} {
		if s.enter(repo) != want {
			t.Errorf("%s enters: %t", repo, !want)
		}
	}
	if !s.enter(of("x", "b")) || s.enter(of("x", "c")) || s.enter(of("x", "d")) || s.enter(of("x", "c")) {
		t.Error("a workspace has another number of places than two")
	}
	if !s.enter(of("y", "b")) {
		t.Error("another workspace has no place")
	}
	s.leave(of("x", "a"))
	next(of("x", "d")) // the other one has asked again since
	// It has nothing to do any more, so the place is the next one's.
	s.passOn(of("x", "d"))
	next(of("x", "c"))
	if !s.enter(of("x", "c")) {
		t.Error("the place is gone")
	}
	s.passOn(of("x", "c"))
	s.leave(of("x", "b"))
	s.leave(of("x", "c"))
	s.leave(of("y", "a"))
	s.leave(of("y", "b"))
	if queue.Len() != 0 || len(s.used) != 0 || len(s.waiting) != 0 || len(s.woken) != 0 {
		t.Errorf("left over: %d enqueued, %v, %v, %v", queue.Len(), s.used, s.waiting, s.woken)
	}
}
