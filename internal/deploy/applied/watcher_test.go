package applied

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/testkube"
)

func newWatcher() *Watcher[string] {
	return &Watcher[string]{
		Summarize: func(object *unstructured.Unstructured) string { return object.GetResourceVersion() },
		Changed:   func(Query, *string, *string) {}, Listed: func([]string) {},
	}
}

func TestWatchesEndWhileOneIsListedForTheFirstTime(t *testing.T) {
	w, query := newWatcher(), Query{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("configmaps")}
	w.Use("user", map[Query]bool{query: true})
	one, listed := w.stores[query], make(chan struct{})
	delete(w.stores, query) // this watch is played
	w.running.Go(func() {
		<-listed
		_ = one.Replace(nil, "1") // no error is returned
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	running := func(want bool) func() error {
		return func() error {
			if !w.mu.TryLock() {
				if want {
					return errors.New("somebody has the lock")
				}
				return nil // the goroutine that ends the watches has the lock
			}
			defer w.mu.Unlock()
			if (w.ctx != nil) != want {
				return fmt.Errorf("running is %v", !want)
			}
			return nil
		}
	}
	testkube.Eventually(t, "the watches run", running(true))
	cancel()
	testkube.Eventually(t, "the watches are being ended", running(false))
	close(listed)
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the watches do not end")
	}
}

func TestSummaryIsOfTheVersionAskedForOrLater(t *testing.T) {
	w, query := newWatcher(), Query{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("configmaps")}
	var events []string
	w.Changed = func(object Query, before, after *string) {
		text := func(summary *string) string {
			if summary == nil {
				return "-"
			}
			return *summary
		}
		events = append(events, object.Name+" "+text(before)+" "+text(after))
	}
	w.Listed = func(users []string) { events = append(events, fmt.Sprint(users)) }
	w.Use("user", map[Query]bool{query: true})
	object := func(name, version string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetName(name)
		o.SetResourceVersion(version)
		return o
	}
	check := func(name, since, summary string, sight Sight) {
		t.Helper()
		if got, is := w.Get(query, types.NamespacedName{Name: name}, since); got != summary || is != sight {
			t.Errorf("%s as of %q: %q, %s; want %q, %s", name, since, got, is, summary, sight)
		}
	}
	check("one", "", "", Unsure)
	store := w.stores[query]
	_ = store.Replace([]any{object("one", "40")}, "50") // none of these returns an error
	check("one", "50", "40", Present)
	check("two", "50", "", Absent)
	check("two", "60", "", Unsure)
	_ = store.Add(object("two", "60"))
	check("two", "60", "60", Present)
	_ = store.Delete(object("one", "70"))
	check("one", "70", "", Absent)
	_ = store.Replace(nil, unserved)
	check("two", "100", "", Absent)
	want := "[one - 40 [user] two - 60 one 40 - two 60 -]"
	if got := fmt.Sprint(events); got != want {
		t.Errorf("notified of %s, want %s", got, want)
	}
	w.Use("user", nil)
	check("two", "", "", Unsure)
}
