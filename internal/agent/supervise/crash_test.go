package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/retry"
)

// suspected waits until an order names a suspect, and returns it.
func (f *fixture) suspected() (found protocol.Suspect) {
	f.t.Helper()
	f.eventually("the order names a suspect", func() error {
		for line := range strings.Lines(f.file("orders")) {
			var order protocol.Order
			if err := json.Unmarshal([]byte(line), &order); err == nil && len(order.Suspects) > 0 {
				found = order.Suspects[0]
				return nil
			}
		}
		return errors.New("it does not")
	})
	return found
}

// keepsStatuses fails the test if anything was written into the statuses.
func (f *fixture) keepsStatuses() {
	f.t.Helper()
	select {
	case said := <-f.said:
		f.t.Errorf("all statuses were changed: %s", said)
	default:
	}
}

const beginsWeb = `echo '{"begun":{"name":"web","uid":"u","generation":7,"within":%d}}'`

func TestBundleOnWhichTheProgramCrashesIsFoundOutAndTheOthersKeepTheirStatuses(t *testing.T) {
	f := newFixture(t, `if [ $(wc -l < runs) -lt 2 ]; then
`+fmt.Sprintf(beginsWeb, time.Minute)+`
echo 'fatal error: runtime: cannot allocate memory: out of memory' >&2
exit 2
fi
cat > orders`)
	f.run("db", "web")
	found := f.suspected()
	if found.Name != "web" || found.UID != "u" || found.Generation != 7 || !found.RetryAt.After(time.Now()) {
		t.Errorf("the suspect is %+v", found)
	}
	for _, part := range []string{"muster-deployer", "once", "it ran out of memory", "more memory"} {
		if !strings.Contains(found.Message, part) {
			t.Errorf("the message %q does not say %q", found.Message, part)
		}
	}
	f.keepsStatuses()
}

func TestBundleOnWhichTheProgramWorksForEverIsFoundOut(t *testing.T) {
	f := newFixture(t, `if [ $(wc -l < runs) -lt 2 ]; then
echo '{"begun":{"name":"db","uid":"d","generation":1,"within":60000000000}}'
`+fmt.Sprintf(beginsWeb, 300*time.Millisecond)+`
exec sleep 60
fi
cat > orders`)
	f.run("db", "web")
	if found := f.suspected(); found.Name != "web" || !strings.Contains(found.Message, "it did not finish within 300ms") {
		t.Errorf("the suspect is %+v", found)
	}
	f.keepsStatuses()
}

func TestProgramThatGivesNoSignOfLifeIsKilledAndStartedAgain(t *testing.T) {
	f := newFixture(t, `if [ $(wc -l < runs) -lt 2 ]; then kill -STOP $$; fi
while sleep 0.1 && kill -0 $$; do echo '{"alive":true}'; done & cat > orders`)
	f.Silence = 2 * time.Second
	f.run("web")
	f.runs(2)
	f.eventually("the order", func() error {
		if f.file("orders") == "" {
			return errors.New("there is none")
		}
		return nil
	})
	f.keepsStatuses()
}

func TestADeadlineIsHeededOnceTheReplyIsHandled(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	w := newWatchdog(clock, time.Hour)
	w.observe(protocol.Reply{Begun: &protocol.Action{Name: "web", Within: time.Minute}})
	<-w.changed // the watch wakes while the reply is still handled, and would sleep for an hour
	if wait := w.remaining(); wait != time.Hour {
		t.Errorf("while a reply is handled it waits %s", wait)
	}
	w.handled()
	select {
	case <-w.changed:
	default:
		t.Error("nothing wakes the watch when the reply is handled")
	}
	if wait := w.remaining(); wait != time.Minute {
		t.Errorf("then it waits %s", wait)
	}
}

func TestSuspects(t *testing.T) {
	now := time.Unix(1000, 0).UTC()
	action := func(name string, generation int64, rendered bool) protocol.Action {
		return protocol.Action{Name: name, UID: "u", Generation: generation, Rendered: rendered}
	}
	type step struct {
		underWay []protocol.Action
		survived string
	}
	for name, row := range map[string]struct {
		steps []step
		want  map[string]time.Duration
	}{
		"one that was alone is delayed": {
			[]step{{underWay: []protocol.Action{action("web", 1, false)}}}, map[string]time.Duration{"web": 10 * time.Second},
		},
		"of two it is not known which": {
			[]step{{underWay: []protocol.Action{action("web", 1, false), action("db", 1, false)}}}, map[string]time.Duration{"web": 0, "db": 0},
		},
		"to wait for a hook takes nothing down": {[]step{{underWay: []protocol.Action{action("web", 1, false), action("db", 1, true)}}},
			map[string]time.Duration{"web": 10 * time.Second}},
		"one that was survived is none": {[]step{
			{underWay: []protocol.Action{action("web", 1, false), action("db", 1, false)}}, {survived: "db"},
		},
			map[string]time.Duration{"web": 0}},
		"each time doubles the delay": {[]step{{underWay: []protocol.Action{action("web", 1, false)}}, {
			underWay: []protocol.Action{action("web", 1, false)},
		},
			{underWay: []protocol.Action{action("web", 1, false)}}}, map[string]time.Duration{"web": 40 * time.Second}},
		"another generation begins anew": {[]step{
			{underWay: []protocol.Action{action("web", 1, false)}}, {underWay: []protocol.Action{action("web", 2, false)}},
		},
			map[string]time.Duration{"web": 10 * time.Second}},
	} {
		var s suspects
		for _, step := range row.steps {
			if step.survived != "" {
				s.clear(step.survived)
				continue
			}
			s.add(step.underWay, "it ran out of memory", now)
		}
		got := map[string]time.Duration{}
		for _, suspect := range s.list() {
			got[suspect.Name] = 0
			if !suspect.RetryAt.IsZero() {
				got[suspect.Name] = suspect.RetryAt.Sub(now)
			}
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := retry.Doubled(firstDelay, 100, lastDelay); got != time.Hour {
		t.Errorf("the longest delay is %s", got)
	}
}

func TestLastWordsSayWhyButQuoteNoLibrary(t *testing.T) {
	for text, want := range map[string]string{
		"fatal error: runtime: out of memory\n":                       "it ran out of memory",
		"x\nfatal error: stack overflow\n":                            "stack overflow",
		"panic: runtime error: index out of range [1]\n\ngoroutine 1": "runtime error: index out of range [1]",
		"panic: the password is s3cret\n":                             "it panicked; read the agent's log",
		"all is well\n":                                               "",
	} {
		words := &crashReader{to: io.Discard}
		for _, half := range []string{text[:len(text)/2], text[len(text)/2:]} {
			if _, err := words.Write([]byte(half)); err != nil {
				t.Fatal(err)
			}
		}
		if words.cause != want {
			t.Errorf("%q: got %q, want %q", text, words.cause, want)
		}
	}
}

func TestMemberIsNotEmptyAsLongAsSomethingIsLeftOrNobodyMayLook(t *testing.T) {
	for name, look := range map[string]func() (bool, error){
		"something is left": func() (bool, error) { return true, nil },
		"nobody may look": func() (bool, error) {
			return false, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, `read order; echo '{"emptied":true}'`)
			said := make(chan string, 100)
			f.Empty = func(left string, emptied bool) { said <- fmt.Sprint(left, emptied) }
			f.Leaves = func() clusterv1beta1.LeavePolicy { return clusterv1beta1.LeaveDelete }
			f.Left = func(context.Context) (bool, error) { return look() }
			f.run()
			if got := <-said; !strings.Contains(got, "the agent cannot remove all deliveries from this cluster") ||
				!strings.HasSuffix(got, "false") {
				t.Errorf("it said %q", got)
			}
		})
	}
}
