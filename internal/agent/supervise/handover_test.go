package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

// testHub is what the agent's own watch of a hub shows: a list when it begins.
type testHub struct {
	mu      sync.Mutex
	objects []any
	watches int
	begun   int
}

func onHub(name string, uid types.UID, generation int64, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, Generation: generation, ResourceVersion: version}}
}

// set sets what the hub has. A watch that runs does not show it.
func (h *testHub) set(objects ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects = objects
}

func (h *testHub) change(by int) (objects []any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches += by; by > 0 {
		h.begun++
	}
	return h.objects
}

func (h *testHub) state() (watches, begun int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watches, h.begun
}

// watched makes the agent watch the hub, as it does beside the program.
func (f *fixture) watched(hub *testHub) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.placed.Watch(ctx, func(ctx context.Context) {
			_ = f.placed.Replace(hub.change(1), "") // the store never fails
			<-ctx.Done()
			hub.change(-1)
		})
	}()
	f.t.Cleanup(func() { cancel(); <-ended })
	f.eventually("the agent watches", func() error { return hub.watching(1) })
}

func (h *testHub) watching(want int) error {
	if watches, _ := h.state(); watches != want {
		return fmt.Errorf("it has %d watches", watches)
	}
	return nil
}

// begin starts the supervisor beside a watch.
func (f *fixture) begin() {
	f.t.Helper()
	<-f.renewed
	ctx, cancel := context.WithCancel(f.t.Context())
	f.cancel = cancel
	go func() {
		defer close(f.ended)
		f.Run(ctx)
	}()
	f.t.Cleanup(f.stop)
}

// lists is a script that says, as the program does, that these objects are there and are watched.
func lists(objects ...string) string {
	lines := []string{`{"kind":"BundleDeployments","event":{"type":"Listing"}}`}
	for _, object := range objects {
		lines = append(lines, `{"kind":"BundleDeployments","event":{"type":"Put","object":`+object+`}}`)
	}
	lines = append(lines, `{"kind":"BundleDeployments","event":{"type":"Listed"}}`)
	return "echo '" + strings.Join(lines, "'; echo '") + "'\n"
}

const (
	agentAt3 = `{"name":"agent","uid":"a","generation":3,"version":"30"}`
	webAt1   = `{"name":"web","uid":"w","generation":1,"version":"31"}`
	idleAt3  = `echo '{"kind":"BundleDeployments","idle":{"agent":3}}'` + "\n"
)

func TestTheAgentDoesNotWatchWhatTheProgramWatches(t *testing.T) {
	f := newFixture(t, lists(agentAt3, webAt1)+`while ! test -e more; do sleep 0.05; done
echo '{"kind":"BundleDeployments","event":{"type":"Put","object":{"name":"db","uid":"d","generation":1,"version":"40"}}}'
echo '{"kind":"BundleDeployments","event":{"type":"Deleted","object":{"name":"web","uid":"w","generation":1,"version":"41"}}}'
while ! test -e end; do sleep 0.05; done
echo '{"kind":"BundleDeployments","event":{"type":"Ended"}}'
cat > rest`)
	hub := &testHub{}
	hub.set(onHub("agent", "a", 3, "30"))
	f.watched(hub)
	f.begin()
	f.eventually("only the program watches", func() error { return hub.watching(0) })
	names := func(want string) {
		t.Helper()
		f.eventually("the agent knows "+want, func() error {
			f.placed.Lock()
			defer f.placed.Unlock()
			if got := fmt.Sprint(f.placed.names); got != want {
				return errors.New(got)
			}
			return nil
		})
	}
	names("map[agent:{a 3 30} web:{w 1 31}]")
	f.touch("more")
	names("map[agent:{a 3 30} db:{d 1 40}]")
	hub.set(onHub("agent", "a", 3, "30"), onHub("db", "d", 2, "50"))
	f.touch("end")
	names("map[agent:{a 3 30} db:{d 2 50}]")
	f.eventually("the agent watches again", func() error { return hub.watching(1) })
}

func TestWhatHappensWhileTheProgramDiesIsNotMissed(t *testing.T) {
	for name, row := range map[string]struct {
		first string
		// idle and changed are what is there when the program has ended, without and with a change
		// that the program had not passed on.
		idle, changed []any
	}{
		"it ends by itself, and an object came": {lists(agentAt3) + idleAt3,
			[]any{onHub("agent", "a", 3, "35")}, []any{onHub("agent", "a", 3, "35"), onHub("web", "w", 1, "36")}},
		"it ends by itself, and an object changed": {lists(agentAt3) + idleAt3,
			[]any{onHub("agent", "a", 3, "35")}, []any{onHub("agent", "a", 4, "36")}},
		"it ends by itself, and an object was made again": {lists(agentAt3) + idleAt3,
			[]any{onHub("agent", "a", 3, "35")}, []any{onHub("agent", "b", 3, "36")}},
		"it ends by itself, and the hub was restored": {lists(agentAt3) + idleAt3,
			[]any{onHub("agent", "a", 3, "35")}, []any{onHub("agent", "a", 3, "20")}},
		"it ends by itself before it says that the last object but its own is gone": {lists(agentAt3, webAt1) + idleAt3,
			[]any{onHub("agent", "a", 3, "35")}, []any{onHub("agent", "a", 3, "35"), onHub("web", "v", 1, "36")}},
		"it is killed before it says that it is idle": {
			lists(agentAt3) + `if [ $(wc -l < runs) -lt 2 ]; then kill -9 $$; fi` + "\n" + lists(agentAt3) + idleAt3,
			[]any{onHub("agent", "a", 3, "35")}, []any{onHub("agent", "a", 3, "35"), onHub("web", "w", 1, "36")}},
	} {
		t.Run(name, func(t *testing.T) {
			for what, then := range map[string][]any{"nothing": row.idle, "a change": row.changed} {
				f := newFixture(t, row.first)
				hub := &testHub{}
				hub.set(onHub("agent", "a", 3, "30"))
				f.watched(hub)
				hub.set(then...) // which the watch that runs does not show
				f.begin()
				f.eventually("the agent has listed anew", func() error {
					if watches, begun := hub.state(); watches != 1 || begun < 2 {
						return fmt.Errorf("it began %d watches, and has %d", begun, watches)
					}
					return nil
				})
				if what == "nothing" {
					f.idles()
					f.runs(1 + strings.Count(row.first, "kill"))
					f.stop()
					continue
				}
				f.eventually("the program runs for it", func() error {
					if got := strings.Count(f.file("runs"), "run"); got < 2+strings.Count(row.first, "kill") {
						return fmt.Errorf("it ran %d times", got)
					}
					return nil
				})
				f.stop()
			}
		})
	}
}

func TestProgramThatIsKilledBeforeItRemovedWhatIsGoneIsStartedAgain(t *testing.T) {
	f := newFixture(t, `case $(wc -l < runs) in
1) `+lists(agentAt3)+idleAt3+`;;
2) `+lists(agentAt3, webAt1)+`echo '{"kind":"BundleDeployments","event":{"type":"Deleted","object":`+webAt1+`}}'; kill -9 $$;;
*) `+lists(agentAt3)+idleAt3+`;;
esac`)
	hub := &testHub{}
	hub.set(onHub("agent", "a", 3, "30"))
	f.watched(hub)
	f.begin()
	f.runs(1)
	f.idles()
	if err := f.placed.Add(onHub("web", "w", 1, "31")); err != nil {
		t.Fatal(err)
	}
	f.runs(3)
	f.idles()
	f.runs(3)
}

// TestEventsAreToldBeforeTheStoreHasThem is why the program can say that it is idle after them.
func TestEventsAreToldBeforeTheStoreHasThem(t *testing.T) {
	inner := cache.NewStore(cache.MetaNamespaceKeyFunc)
	var told []string
	store := protocol.Telling{ReflectorStore: inner, Tell: func(e protocol.Event) {
		line := string(e.Type)
		if e.Object != nil {
			line = fmt.Sprintf("%s %s %d", line, e.Object.Name, e.Object.Generation)
		}
		told = append(told, fmt.Sprintf("%s with %d", line, len(inner.List())))
	}}
	for _, err := range []error{
		store.Replace([]any{onHub("a", "a", 1, "1")}, "1"), store.Add(onHub("b", "b", 2, "2")),
		store.Update(onHub("b", "b", 3, "3")), store.Delete(onHub("a", "a", 1, "4")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := "[Listing with 0 Put a 1 with 0 Listed with 0 Put b 2 with 1 Put b 3 with 2 Deleted a 1 with 2]"
	if got := fmt.Sprint(told); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// touch makes a file that the script waits for.
func (f *fixture) touch(name string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
}
