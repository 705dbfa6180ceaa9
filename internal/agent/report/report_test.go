package report

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

func TestSummary(t *testing.T) {
	list := func(cpu string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(cpu)} }
	for name, row := range map[string]struct {
		nodes map[string]node
		want  summary
	}{
		"a cluster without nodes has nothing": {
			want: summary{capacity: corev1.ResourceList{}, allocatable: corev1.ResourceList{}},
		},
		"the sample is the first ready node by name": {
			nodes: map[string]node{"a": {}, "c": {ready: true}, "b": {ready: true}},
			want: summary{
				nodes:    clusterv1beta1.NodeSummary{Total: 3, Ready: 2, Sample: "b"},
				capacity: corev1.ResourceList{}, allocatable: corev1.ResourceList{},
			},
		},
		"the sample is the first node if none is ready": {
			nodes: map[string]node{"b": {}, "a": {}},
			want: summary{
				nodes:    clusterv1beta1.NodeSummary{Total: 2, Sample: "a"},
				capacity: corev1.ResourceList{}, allocatable: corev1.ResourceList{},
			},
		},
		"all resources of all nodes are added up": {
			nodes: map[string]node{
				"a": {capacity: list("1"), allocatable: list("900m")},
				"b": {capacity: corev1.ResourceList{"cpu": resource.MustParse("2"), "example.com/gpu": resource.MustParse("4")}},
			},
			want: summary{
				nodes:       clusterv1beta1.NodeSummary{Total: 2, Sample: "a"},
				capacity:    corev1.ResourceList{"cpu": resource.MustParse("3"), "example.com/gpu": resource.MustParse("4")},
				allocatable: list("900m"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, summarize(row.nodes), cmp.AllowUnexported(summary{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNextWriteIsDue(t *testing.T) {
	last := time.Unix(1000, 0)
	for name, row := range map[string]struct {
		last    time.Time
		changed bool
		urgent  bool
		want    time.Time
	}{
		"at once when there was none yet":          {changed: true},
		"at once when somebody waits for it":       {last: last, changed: true, urgent: true},
		"10 s after the last one on a change":      {last: last, changed: true, want: last.Add(10 * time.Second)},
		"10 min after the last one without change": {last: last, want: last.Add(10 * time.Minute)},
	} {
		if got := due(row.last, row.changed, row.urgent); !got.Equal(row.want) {
			t.Errorf("%s: got %s, want %s", name, got, row.want)
		}
	}
}

func TestTransitionTimeIsThatOfTheLastTransition(t *testing.T) {
	before := metav1.NewTime(time.Unix(1000, 0))
	now := metav1.NewTime(time.Unix(2000, 0))
	got := conditions(facts{unhealthy: "etcd is away", generation: 3}, "", []metav1.Condition{
		{Type: "Joined", Status: "True", LastTransitionTime: before}, {Type: "Healthy", Status: "True", LastTransitionTime: before},
	}, now)
	want := []metav1.Condition{
		{Type: "Joined", Status: "True", Reason: "InternalMemberClusterJoined", Message: "the agent has joined", ObservedGeneration: 3, LastTransitionTime: before},
		{Type: "Healthy", Status: "False", Reason: "InternalMemberClusterUnhealthy", Message: "etcd is away", ObservedGeneration: 3, LastTransitionTime: now},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// fakeMember lists its nodes when the test sends them.
type fakeMember struct {
	nodes chan []any
	sick  atomic.Bool
}

func (m *fakeMember) Ready(context.Context) error {
	if m.sick.Load() {
		return errors.New("etcd is away")
	}
	return nil
}

func (m *fakeMember) Version(context.Context) (string, error) { return "v1.36.3", nil }
func (m *fakeMember) FollowNodes(ctx context.Context, store cache.ReflectorStore, _ func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case list := <-m.nodes:
			_ = store.Replace(list, "") // the store never fails
		}
	}
}

func (m *fakeMember) FollowPods(ctx context.Context, store cache.ReflectorStore, _ func(error)) {
	_ = store.Replace(nil, "") // the store never fails
	<-ctx.Done()
}

func (m *fakeMember) FollowNamespaces(ctx context.Context, store cache.ReflectorStore, _ func(error)) {
	_ = store.Replace(nil, "") // the store never fails
	<-ctx.Done()
}

func nodeList(names ...string) (list []any) {
	for _, name := range names {
		list = append(list, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list
}

// start runs a reporter until stop is called.
func start(t *testing.T, r *Reporter) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	return func() { cancel(); <-done }
}

// write is when a report came and what it said.
type write struct {
	At      time.Duration
	Nodes   int32
	Healthy string
}

// reporting runs a reporter beside a script and returns what it wrote.
func reporting(t *testing.T, fail func() error, script func(m *fakeMember, check chan<- struct{})) []write {
	t.Helper()
	var writes []write
	member := &fakeMember{nodes: make(chan []any)}
	checks := make(chan struct{})
	begun := time.Now()
	reporter := Reporter{
		Member: member, Observe: func() Session { return Session{} }, HealthDue: checks, Clock: clock.RealClock{}, Explain: func(err error) string { return err.Error() },
		Write: func(_ context.Context, status clusterv1beta1.InternalMemberClusterStatus) error {
			w := write{At: time.Since(begun), Nodes: -1, Healthy: string(status.AgentStatus[0].Conditions[1].Status)}
			if status.Nodes != nil {
				w.Nodes = status.Nodes.Total
			}
			writes = append(writes, w)
			return fail()
		},
	}
	stop := start(t, &reporter)
	script(member, checks)
	stop()
	return writes
}

func never() error { return nil }

func TestChangesAreCoalescedToOneWriteInTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := reporting(t, never, func(m *fakeMember, _ chan<- struct{}) {
			m.nodes <- nodeList("a")
			for _, names := range [][]string{{"a", "b"}, {"a", "b", "c"}, {"b", "c"}} {
				time.Sleep(time.Second)
				m.nodes <- nodeList(names...)
			}
			time.Sleep(15 * time.Minute)
		})
		want := []write{{0, 1, "True"}, {10 * time.Second, 2, "True"}, {10*time.Minute + 10*time.Second, 2, "True"}}
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestNodesThatCannotBeListedDoNotHoldTheFirstReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := reporting(t, never, func(*fakeMember, chan<- struct{}) { time.Sleep(time.Minute) })
		if diff := cmp.Diff([]write{{5 * time.Second, -1, "True"}}, writes); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestSickMemberIsReportedAtTheNextBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := reporting(t, never, func(m *fakeMember, check chan<- struct{}) {
			m.nodes <- nodeList("a")
			time.Sleep(30 * time.Second)
			m.sick.Store(true)
			check <- struct{}{}
			time.Sleep(time.Second)
		})
		if diff := cmp.Diff([]write{{0, 1, "True"}, {30 * time.Second, 1, "False"}}, writes); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestFailedReportIsRepeatedWithBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 3
		writes := reporting(t, func() error {
			if failures--; failures < 0 {
				return nil
			}
			return errors.New("the hub is away")
		}, func(m *fakeMember, _ chan<- struct{}) {
			m.nodes <- nodeList("a")
			time.Sleep(time.Minute)
		})
		if len(writes) != 4 || writes[3].At > 10*time.Second {
			t.Errorf("writes: %v, want 4 within 10 s", writes)
		}
	})
}
