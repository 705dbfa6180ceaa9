package shares

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestAWorkspaceTakesNoMoreThanItsShare(t *testing.T) {
	s := New(2)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := s.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	of := func(workspace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: workspace, Name: name}
	}
	next := func(want types.NamespacedName) {
		t.Helper()
		if queue.Len() != 1 {
			t.Fatalf("%d objects are enqueued, want %s", queue.Len(), want)
		}
		got, _ := queue.Get()
		queue.Done(got)
		if got.NamespacedName != want {
			t.Fatalf("enqueued is %s, want %s", got, want)
		}
	}
	for object, want := range map[types.NamespacedName]bool{of("x", "a"): true, of("y", "a"): true} {
		if s.Enter(object) != want {
			t.Errorf("%s enters: %t", object, !want)
		}
	}
	if !s.Enter(of("x", "b")) || s.Enter(of("x", "c")) || s.Enter(of("x", "d")) || s.Enter(of("x", "c")) {
		t.Error("a workspace has another number of places than two")
	}
	if !s.Enter(of("y", "b")) {
		t.Error("another workspace has no place")
	}
	s.Leave(of("x", "a"))
	next(of("x", "d")) // the other one has asked again since
	// It has nothing to do any more, so the place is the next one's.
	s.PassOn(of("x", "d"))
	next(of("x", "c"))
	if !s.Enter(of("x", "c")) {
		t.Error("the place is gone")
	}
	s.PassOn(of("x", "c"))
	s.Leave(of("x", "b"))
	s.Leave(of("x", "c"))
	s.Leave(of("y", "a"))
	s.Leave(of("y", "b"))
	if queue.Len() != 0 || len(s.used) != 0 || len(s.waiting) != 0 || len(s.woken) != 0 {
		t.Errorf("left over: %d enqueued, %v, %v, %v", queue.Len(), s.used, s.waiting, s.woken)
	}
}
