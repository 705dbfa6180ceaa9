package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-fleet/muster/internal/hubclient"
)

// fakeLease is the Lease of a hub.
type fakeLease struct {
	holder string
	// version counts the changes, renewed the beats.
	version, renewed int
	blind            bool
	// mute loses the answer to the next heartbeat.
	mute  bool
	reads int
	marks []string
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *fakeLease) read() hubclient.Lease {
	return hubclient.Lease{Holder: l.holder, Version: fmt.Sprint("uid/", l.version), Renewed: fmt.Sprint(l.renewed)}
}

func (l *fakeLease) Lease(context.Context) (hubclient.Lease, error) {
	l.reads++
	if l.blind {
		return hubclient.Lease{}, apierrors.NewForbidden(leases, "heartbeat", errors.New("get"))
	}
	return l.read(), nil
}

func (l *fakeLease) Beat(_ context.Context, holder string, _ time.Time, since hubclient.Lease) (hubclient.Lease, error) {
	if since.Version != "" && since.Version != l.read().Version {
		return hubclient.Lease{}, apierrors.NewConflict(leases, "heartbeat", errors.New("changed"))
	}
	l.beat(holder)
	if l.mute {
		l.mute = false
		return hubclient.Lease{}, context.DeadlineExceeded
	}
	return l.read(), nil
}

// beat is one of an agent.
func (l *fakeLease) beat(holder string) {
	l.holder = holder
	l.version++
	l.renewed++
}

func (l *fakeLease) MarkWaiting(_ context.Context, waiter string, _ time.Time) error {
	l.version++
	l.marks = append(l.marks, waiter)
	return nil
}

const period = 10 * time.Second

// beats lets a Candidate try one heartbeat per period, and returns the outcome of each attempt.
func beats(t *testing.T, c *Candidate, start time.Time, before ...func()) string {
	t.Helper()
	var outcome []string
	for i, do := range before {
		if do != nil {
			do()
		}
		err := c.Beat(t.Context(), start.Add(time.Duration(i)*period), period)
		var held *HeldError
		switch {
		case err == nil:
			outcome = append(outcome, "beat")
		case errors.As(err, &held) && held.Alive:
			outcome = append(outcome, "wait for "+held.Holder)
		case errors.As(err, &held):
			outcome = append(outcome, "watch "+held.Holder)
		default:
			t.Fatal(err)
		}
	}
	return strings.Join(outcome, ", ")
}

func TestOneAgentBeatsAtATime(t *testing.T) {
	start := time.Unix(1000, 0)
	for name, row := range map[string]struct {
		holder string
		script func(l *fakeLease) []func()
		want   string
	}{
		"a Lease of nobody is taken":                         {want: "beat"},
		"that of its own process before is taken up at once": {holder: "aaaaaaaa_pod_first", want: "beat"},
		"that of its predecessor in the same cluster is taken at once": {
			holder: "aaaaaaaa_pod-before", want: "beat",
		},
		"that of another cluster is taken after three silent periods": {
			holder: "bbbbbbbb_pod", script: func(*fakeLease) []func() { return make([]func(), 5) },
			want: "watch bbbbbbbb_pod, watch bbbbbbbb_pod, watch bbbbbbbb_pod, beat, beat",
		},
		"an agent elsewhere that beats is waited for, until it has been silent": {
			holder: "bbbbbbbb_pod",
			script: func(l *fakeLease) []func() {
				beat := func() { l.beat(l.holder) }
				return []func(){nil, beat, nil, beat, nil, nil, nil}
			},
			want: "watch bbbbbbbb_pod, wait for bbbbbbbb_pod, wait for bbbbbbbb_pod, wait for bbbbbbbb_pod, wait for bbbbbbbb_pod, wait for " +
				"bbbbbbbb_pod, beat",
		},
		"a change that is no beat of another is none of its business": {
			script: func(l *fakeLease) []func() { return []func(){nil, func() { l.version++ }, nil} },
			want:   "beat, beat, beat",
		},
		"who is displaced waits, even for an agent of the same cluster": {
			script: func(l *fakeLease) []func() {
				other := func() { l.beat("aaaaaaaa_other") }
				return []func(){nil, other, nil, nil, nil}
			},
			want: "beat, wait for aaaaaaaa_other, wait for aaaaaaaa_other, wait for aaaaaaaa_other, beat",
		},
		"one in a copy of the whole cluster, with all its names, is another": {
			script: func(l *fakeLease) []func() {
				other := func() { l.beat("aaaaaaaa_pod_other") }
				return []func(){nil, other, other, nil, nil, nil}
			},
			want: "beat, wait for aaaaaaaa_pod_other, wait for aaaaaaaa_pod_other, wait for aaaaaaaa_pod_other, wait for aaaaaaaa_pod_other, beat",
		},
		"marks of a third that waits are no sign of life": {
			holder: "bbbbbbbb_pod",
			script: func(l *fakeLease) []func() {
				mark := func() { _ = l.MarkWaiting(context.Background(), "cccccccc_pod", time.Time{}) }
				return []func(){nil, mark, mark, mark}
			},
			want: "watch bbbbbbbb_pod, watch bbbbbbbb_pod, watch bbbbbbbb_pod, beat",
		},
		"a hub that does not let it look is beaten blindly": {
			holder: "bbbbbbbb_pod", script: func(l *fakeLease) []func() { l.blind = true; return make([]func(), 2) }, want: "beat, beat",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &fakeLease{holder: row.holder}
			script := make([]func(), 1)
			if row.script != nil {
				script = row.script(l)
			}
			c := &Candidate{Lease: l, ClusterID: "aaaaaaaa-1111-2222", Hostname: "pod"}
			if diff := cmp.Diff(row.want, beats(t, c, start, script...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestHealthyBeatIsOneRequest(t *testing.T) {
	l := &fakeLease{}
	c := &Candidate{Lease: l, ClusterID: "aaaaaaaa-1111-2222", Hostname: "pod"}
	beats(t, c, time.Unix(1000, 0), make([]func(), 10)...)
	if l.reads != 1 {
		t.Errorf("the Lease was read %d times for 10 beats, want once", l.reads)
	}
}

// TestAHeartbeatWhoseAnswerWasLostCounts keeps an overloaded API server from being asked for the
// same heartbeat again.
func TestAHeartbeatWhoseAnswerWasLostCounts(t *testing.T) {
	for name, row := range map[string]struct {
		after time.Duration
		other string
		want  int
	}{
		"it arrived":                    {after: period / 2, want: 2},
		"it arrived long ago":           {after: period, want: 3},
		"an agent elsewhere took over":  {after: period / 2, other: "bbbbbbbb_pod", want: 3},
		"a copy of the cluster took it": {after: period / 2, other: "aaaaaaaa_pod_other", want: 3},
	} {
		l := &fakeLease{}
		c := &Candidate{Lease: l, ClusterID: "aaaaaaaa-1111-2222", Hostname: "pod"}
		start := time.Unix(1000, 0)
		beats(t, c, start, nil)
		l.mute = true
		if err := c.Beat(t.Context(), start, period); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%s: the lost answer is %v", name, err)
		}
		if row.other != "" {
			l.beat(row.other)
		}
		var held *HeldError
		err := c.Beat(t.Context(), start.Add(row.after), period)
		if waits := errors.As(err, &held); waits != (row.other != "") || l.renewed != row.want {
			t.Errorf("%s: %d heartbeats, want %d, and %v", name, l.renewed, row.want, err)
		}
		if row.other != "" {
			continue
		}
		if got := beats(t, c, start.Add(2*period), nil); got != "beat" || l.renewed != row.want+1 {
			t.Errorf("%s: the next one is %s, the %d.", name, got, l.renewed)
		}
	}
}

func TestRivalSaysWhenToLookAgain(t *testing.T) {
	l := &fakeLease{holder: "bbbbbbbb_pod"}
	c := &Candidate{Lease: l, ClusterID: "aaaaaaaa-1111-2222", Hostname: "pod"}
	start := time.Unix(1000, 0)
	for elapsed, want := range []time.Duration{0: period, 22: 8 * time.Second} {
		if want == 0 {
			continue
		}
		var held *HeldError
		if err := c.Beat(t.Context(), start.Add(time.Duration(elapsed)*time.Second), period); !errors.As(err, &held) || held.RetryAfter != want {
			t.Errorf("after %d s: %+v, %v, want a wait of %s", elapsed, held, err, want)
		}
	}
}

func TestHolderTellsClustersPodsAndProcessesApart(t *testing.T) {
	if got := Holder("aaaaaaaa-1", "pod", "x7k2q"); got != "aaaaaaaa_pod_x7k2q" || hostnameOf(got) != "pod" ||
		hostnameOf("aaaaaaaa_pod") != "pod" {
		t.Errorf("got %s, of %s", got, hostnameOf(got))
	}
	l := &fakeLease{}
	one, other := &Candidate{Lease: l, ClusterID: "aaaaaaaa-1", Hostname: "pod"}, &Candidate{
		Lease: l, ClusterID: "aaaaaaaa-1", Hostname: "pod",
	}
	if first := one.holder(); first == other.holder() || first != one.holder() {
		t.Errorf("two processes are %s, then %s, and %s", first, one.holder(), other.holder())
	}
}

// TestWhoWaitsForAnotherClusterSaysSo also counts the marks: one per period at most, and none of a
// pod that its own Deployment replaces.
func TestWhoWaitsForAnotherClusterSaysSo(t *testing.T) {
	for name, row := range map[string]struct {
		holder  string
		sibling bool
		err     error
		silent  bool
		want    int
	}{
		"an agent of another cluster beats":                     {holder: "bbbbbbbb_pod", want: 4},
		"an agent of another cluster has a pod of that name":    {holder: "bbbbbbbb_pod", sibling: true, want: 4},
		"an agent of another cluster is silent":                 {holder: "bbbbbbbb_pod", silent: true},
		"the pod that replaces this one beats":                  {holder: "aaaaaaaa_new", sibling: true},
		"a copy of this cluster beats":                          {holder: "aaaaaaaa_new", want: 4},
		"it is not known whether a pod of this namespace beats": {holder: "aaaaaaaa_new", err: errors.New("no answer")},
	} {
		l := &fakeLease{}
		c := &Candidate{
			Lease: l, ClusterID: "aaaaaaaa-1111", Hostname: "pod",
			Sibling: func(context.Context, string) (bool, error) { return row.sibling, row.err },
		}
		beats(t, c, time.Unix(1000, 0), func() {})
		l.beat(row.holder)
		for i := range 12 {
			if i%3 == 0 && !row.silent {
				l.beat(row.holder)
			}
			if row.silent && i == 0 {
				*c = Candidate{Lease: l, ClusterID: c.ClusterID, Hostname: c.Hostname}
			}
			var held *HeldError
			if err := c.Beat(t.Context(), time.Unix(1010, 0).Add(time.Duration(i)*period/3), period); i < 9 && !errors.As(err, &held) {
				t.Errorf("%s: it does not wait: %v", name, err)
			}
		}
		if len(l.marks) != row.want || len(l.marks) > 0 && l.marks[0] != c.holder() {
			t.Errorf("%s: the marks are %v, want %d", name, l.marks, row.want)
		}
	}
}
