package importer

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAWorkspaceHasItsPartOfTheAttemptsAndNobodyIsForgotten(t *testing.T) {
	tracker, ctx := newTracker(), t.Context()
	key := func(i int) types.NamespacedName { return types.NamespacedName{Namespace: "many", Name: fmt.Sprint(i)} }
	for i := range 3 * perWorkspace {
		if got, want := tracker.acquire(key(i)), i < perWorkspace; got != want {
			t.Fatalf("attempt %d: %t, want %t", i, got, want)
		}
	}
	if other := (types.NamespacedName{Namespace: "other", Name: "a"}); !tracker.acquire(other) {
		t.Error("another workspace finds no place")
	}
	tracker.acquire(key(perWorkspace)) // asking twice changes nothing
	for i := range perWorkspace {
		tracker.release(ctx, key(i))
	}
	woken := 0
	for len(tracker.free) > 0 {
		next := client.ObjectKeyFromObject((<-tracker.free).Object)
		if want := key(perWorkspace + woken); next != want {
			t.Fatalf("%s is woken, want %s", next, want)
		}
		woken++
		if woken%2 == 0 && !tracker.acquire(next) { // every other one has gone meanwhile, and its place goes on
			t.Errorf("%s was woken and has no place", next)
		}
		tracker.release(ctx, next)
	}
	if woken != 2*perWorkspace || len(tracker.connections) != 1 || len(tracker.queues) != 0 {
		t.Errorf("%d were woken, and there remain %v and %v", woken, tracker.connections, tracker.queues)
	}
}

func TestReimportsStartOneAfterTheOther(t *testing.T) {
	tracker := newTracker()
	for _, c := range []struct {
		name      string
		now, want time.Time
	}{
		{"the first starts at once", now, now},
		{"the second a moment later", now, now.Add(stagger)},
		{"after a long time at once again", now.Add(time.Hour), now.Add(time.Hour)},
	} {
		if got := tracker.nextStart(c.now); !got.Equal(c.want) {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestAClusterIsClaimedOnceInAWorkspaceAndForgottenWithItsRecord(t *testing.T) {
	tracker := newTracker()
	a, b, other := types.NamespacedName{Namespace: "w", Name: "a"}, types.NamespacedName{Namespace: "w", Name: "b"},
		types.NamespacedName{Namespace: "other", Name: "a"}
	for _, c := range []struct{ key, want types.NamespacedName }{{a, a}, {a, a}, {b, a}, {other, other}} {
		if got := tracker.claim(c.key, "id"); got != c.want {
			t.Errorf("%s: %s has the cluster, want %s", c.key, got, c.want)
		}
	}
	tracker.forget(t.Context(), a)
	if got := tracker.claim(b, "id"); got != b {
		t.Errorf("%s still has the cluster", got)
	}
	record := func(uid types.UID) *fleet.Cluster {
		return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "w", Name: "b", UID: uid}}
	}
	tracker.history(record("1")).failures = 7
	if tracker.history(record("1")).failures != 7 || tracker.history(record("2")).failures != 0 {
		t.Error("a record does not keep its history, or has that of an earlier one of its name")
	}
}
