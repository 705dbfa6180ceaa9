package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
)

// fixture is a supervisor whose program is a script.
type fixture struct {
	*Supervisor
	t       *testing.T
	dir     string
	placed  *Placed
	token   atomic.Pointer[string]
	renewed chan struct{}
	said    chan string
	ended   chan struct{}
	cancel  context.CancelFunc
}

func newFixture(t *testing.T, script string) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir(), renewed: make(chan struct{}, 1), said: make(chan string, 100), ended: make(chan struct{})}
	f.renew("first")
	path := filepath.Join(f.dir, protocol.Program)
	if script != "" {
		script = fmt.Sprintf("#!/bin/sh\ncd %s\necho run >> runs\n%s\n", f.dir, script)
		if err := os.WriteFile(path, []byte(script), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	f.placed = NewPlaced(protocol.Bundles, make(chan struct{}, 1))
	f.placed.Report = func(_ context.Context, placed map[string]int64, sentence string) error {
		f.said <- strings.Join(slices.Sorted(maps.Keys(placed)), ",") + ": " + sentence
		return nil
	}
	f.Supervisor = &Supervisor{
		Path: path, Arguments: []string{"--namespace=a"}, Renewed: f.renewed, Placed: []*Placed{f.placed}, Changed: f.placed.Changed,
		Order: func() protocol.Order { return protocol.Order{Namespace: "m", Token: *f.token.Load()} },
		Left:  func(context.Context) (bool, error) { return false, nil }, Leaves: func() clusterv1beta1.LeavePolicy { return "" },
		Log: testr.New(t), Clock: clock.RealClock{},
	}
	return f
}

func (f *fixture) renew(token string) {
	f.token.Store(&token)
	select {
	case f.renewed <- struct{}{}:
	default:
	}
}

func (f *fixture) run(placed ...string) {
	f.t.Helper()
	<-f.renewed
	var list []any
	for _, name := range placed {
		list = append(list, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if err := f.placed.Replace(list, ""); err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	f.cancel = cancel
	go func() {
		defer close(f.ended)
		f.Run(ctx)
	}()
	f.t.Cleanup(f.stop)
}

func (f *fixture) stop() {
	f.cancel()
	<-f.ended
}

func (f *fixture) file(name string) string {
	text, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		return ""
	}
	return string(text)
}

func (f *fixture) eventually(what string, check func() error) {
	f.t.Helper()
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	f.t.Fatalf("%s: %v", what, err)
}

// idles returns when the supervisor has found nothing to do after everything that was signalled: it
// reads the second note only then.
func (f *fixture) idles() {
	f.t.Helper()
	for range 2 {
		f.eventually("it reads that something changed", func() error {
			select {
			case f.placed.Changed <- struct{}{}:
				return nil
			default:
				return errors.New("it does not")
			}
		})
	}
	f.eventually("it reads the last note", func() error {
		if len(f.placed.Changed) > 0 {
			return errors.New("it does not")
		}
		return nil
	})
}

func (f *fixture) runs(want int) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%d runs", want), func() error {
		if got := strings.Count(f.file("runs"), "run"); got != want {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
}

func TestProgramIsStartedWithTheFirstDeploymentAndGetsItsCredentialOverStandardInputOnly(t *testing.T) {
	f := newFixture(t, `env > env; echo "$@" > args; cat > orders`)
	f.run()
	f.idles()
	f.runs(0)
	if err := f.placed.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web"}}); err != nil {
		t.Fatal(err)
	}
	tokens := func() (tokens []string) {
		for line := range strings.Lines(f.file("orders")) {
			var order protocol.Order
			if err := json.Unmarshal([]byte(line), &order); err == nil {
				tokens = append(tokens, order.Token)
			}
		}
		return tokens
	}
	want := func(all ...string) func() error {
		return func() error {
			if got := tokens(); fmt.Sprint(got) != fmt.Sprint(all) {
				return fmt.Errorf("got %v", got)
			}
			return nil
		}
	}
	f.eventually("the order", want("first"))
	f.renew("second")
	f.eventually("the renewed credential", want("first", "second"))
	if strings.Contains(f.file("env")+f.file("args"), "first") || !strings.Contains(f.file("args"), "--namespace=a") {
		t.Errorf("environment and arguments hold %s %s", f.file("env"), f.file("args"))
	}
	f.stop()
	f.runs(1)
}

func TestProgramThatCrashesAgainAndAgainForNoKnownReasonIsSaid(t *testing.T) {
	f := newFixture(t, `[ $(wc -l < runs) -lt 4 ] && exit 3; cat > orders`)
	f.run("db", "web")
	if said := <-f.said; !strings.HasPrefix(said, "db,web: ") || !strings.Contains(said, "exit status 3") {
		t.Errorf("it said %q", said)
	}
	f.runs(4)
	f.eventually("the order", func() error {
		if f.file("orders") == "" {
			return errors.New("there is none")
		}
		return nil
	})
}

func TestMissingProgramIsSaid(t *testing.T) {
	f := newFixture(t, "")
	f.run("web")
	if said := <-f.said; !strings.Contains(said, "web: nothing is deployed on this cluster, because the program muster-deployer is missing") {
		t.Errorf("it said %q", said)
	}
}

func TestProgramThatIsDoneIsStartedAgainWithTheNextDeployment(t *testing.T) {
	f := newFixture(t, `[ $(wc -l < runs) -lt 2 ] && exit 0; cat > orders`)
	// Nothing is placed, but something is left of what was.
	f.Left = func(context.Context) (bool, error) { return true, nil }
	f.run()
	f.runs(1)
	if err := f.placed.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web"}}); err != nil {
		t.Fatal(err)
	}
	f.runs(2)
}

func TestLineThatIsNoOrderIsNotQuoted(t *testing.T) {
	err := protocol.ReadOrders(strings.NewReader(`{"token":"s3cret"`+"\n"), func(protocol.Order) { t.Error("it was taken") })
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

func TestMemberThatLeavesIsEmptiedByTheProgramAndNotServedAnyMore(t *testing.T) {
	f := newFixture(t, `read order; echo "$order" > orders; echo '{"left":"2 objects left"}'; rm -f left; echo '{"emptied":true}'`)
	said := make(chan string, 10)
	f.Empty = func(left string, emptied bool) { said <- fmt.Sprint(left, emptied) }
	f.Leaves = func() clusterv1beta1.LeavePolicy { return clusterv1beta1.LeaveDelete }
	f.Order = func() protocol.Order { return protocol.Order{Leave: clusterv1beta1.LeaveDelete} }
	f.run("web")
	for _, want := range []string{"2 objects leftfalse", "true"} {
		if got := <-said; got != want {
			t.Errorf("it said %q, want %q", got, want)
		}
	}
	f.runs(1)
	if !strings.Contains(f.file("orders"), `"leave":"Delete"`) {
		t.Errorf("the order was %s", f.file("orders"))
	}
}

func TestMemberOnWhichNothingIsLeftLeavesWithoutTheProgram(t *testing.T) {
	f := newFixture(t, "exit 1")
	said := make(chan bool, 100)
	f.Empty = func(_ string, emptied bool) { said <- emptied }
	f.Leaves = func() clusterv1beta1.LeavePolicy { return clusterv1beta1.LeaveDelete }
	f.run()
	if !<-said {
		t.Error("it is not emptied")
	}
	f.idles()
	f.runs(0)
}

func TestMemberThatLeavesAndKeepsWhatItHasIsNotServedAnyMore(t *testing.T) {
	f := newFixture(t, "exit 1")
	f.Leaves = func() clusterv1beta1.LeavePolicy { return clusterv1beta1.LeaveOrphan }
	f.run("web")
	f.idles()
	f.runs(0)
}

func TestASimulationTakesOrdersAndRunsAgainForWhatItWasNotIdleWith(t *testing.T) {
	f := newFixture(t, "")
	tokens, generation := make(chan string, 10), atomic.Int64{}
	f.Simulation = func(_ context.Context, orders io.Reader, replies io.Writer) error {
		received := make(chan protocol.Order)
		go func() { _ = protocol.ReadOrders(orders, func(o protocol.Order) { received <- o }) }() // until the pipe is closed
		tokens <- (<-received).Token
		return protocol.Reply{Kind: protocol.Bundles, Idle: map[string]int64{"app": generation.Load()}}.Send(replies)
	}
	f.run()
	for wanted := int64(1); wanted < 3; wanted++ {
		generation.Store(wanted)
		if err := f.placed.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "app", Generation: wanted}}); err != nil {
			t.Fatal(err)
		}
		if token := <-tokens; token != "first" {
			t.Errorf("the order has the token %q", token)
		}
		f.eventually("the simulation has ended", func() error {
			if f.placed.needsProgram() {
				return errors.New("it is not idle")
			}
			return nil
		})
	}
}

func TestABrokenWatchDoesNotStartTheProgramThatWasIdle(t *testing.T) {
	f := newFixture(t, `echo '{"kind":"BundleDeployments","idle":{"agent":2}}'`)
	agent := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "agent", UID: "a", Generation: 2}}
	f.run()
	if err := f.placed.Replace([]any{agent}, ""); err != nil {
		t.Fatal(err)
	}
	f.runs(1)
	f.idles()
	if err := f.placed.Replace([]any{agent.DeepCopy()}, ""); err != nil { // as a reflector does that lists anew
		t.Fatal(err)
	}
	f.idles()
	f.runs(1)
	agent.Generation = 3
	if err := f.placed.Update(agent); err != nil {
		t.Fatal(err)
	}
	f.eventually("the program runs again", func() error {
		if strings.Count(f.file("runs"), "run") < 2 {
			return errors.New("it does not")
		}
		return nil
	})
}
