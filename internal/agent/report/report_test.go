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
				facts:       map[string]string{"muster/extended-resources": "example.com/gpu=4"},
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

func TestStrippedNodesSumUpAsWholeOnes(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"long": "text"}},
			Status: corev1.NodeStatus{
				Capacity: list("cpu", "4", "pods", "110"), Allocatable: list("cpu", "3", "pods", "110"),
				Images: []corev1.ContainerImage{{Names: []string{"a"}}},
				Conditions: []corev1.NodeCondition{
					{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse}, {Type: corev1.NodeReady, Status: ready},
				},
			},
		}
	}
	whole := []any{node("a", corev1.ConditionFalse), node("b", corev1.ConditionTrue)}
	n := newNodes(make(chan struct{}, 1))
	var stripped []any
	for _, obj := range whole {
		s, err := n.Transformer()(obj)
		if err != nil || s.(*corev1.Node).Annotations != nil || s.(*corev1.Node).Status.Images != nil {
			t.Fatalf("stripping %v: %v, %v", obj, s, err)
		}
		stripped = append(stripped, s)
	}
	if !n.IsPaged() || !newPods(make(chan struct{}, 1)).IsPaged() || !newNamespaces(make(chan struct{}, 1)).IsPaged() {
		t.Error("nodes, pods or namespaces are read all at once")
	}
	want := summary{
		listed: true, nodes: clusterv1beta1.NodeSummary{Total: 2, Ready: 1, Sample: "b"},
		capacity: list("cpu", "8", "pods", "220"), allocatable: list("cpu", "6", "pods", "220"),
	}
	for form, objects := range map[string][]any{"whole": whole, "stripped": stripped} {
		_ = n.Replace(objects, "") // the store never fails
		if diff := cmp.Diff(want, n.summary(), cmp.AllowUnexported(summary{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", form, diff)
		}
	}
}

func TestNextWriteIsDue(t *testing.T) {
	last := time.Unix(1000, 0)
	for name, row := range map[string]struct {
		last   time.Time
		what   change
		period time.Duration
		lost   bool
		// after is how long after the last one; negative for at once.
		after time.Duration
	}{
		"at once when there was none yet":                      {time.Time{}, changed, 0, false, -1},
		"at once when somebody waits for it":                   {last, urgent, 0, false, -1},
		"10 s after the last one on a change":                  {last, changed, time.Minute, false, 10 * time.Second},
		"10 min after the last one without change":             {last, none, 10 * time.Second, false, 10 * time.Minute},
		"so it is without a period":                            {last, none, 0, false, 10 * time.Minute},
		"later in a larger fleet":                              {last, none, 30 * time.Second, false, 30 * time.Minute},
		"an hour after it in the largest":                      {last, none, time.Minute, false, time.Hour},
		"10 min after it if the hub has lost it":               {last, none, time.Minute, true, 10 * time.Minute},
		"no more than an hour after it":                        {last, none, 10 * time.Minute, false, time.Hour},
		"a heartbeat period after it when Pods started":        {last, usage, time.Minute, false, time.Minute},
		"not before 10 s when Pods started, however short":     {last, usage, time.Second, false, 10 * time.Second},
		"10 s after it when Pods started without a period":     {last, usage, 0, false, 10 * time.Second},
		"at most 10 min after it when Pods started, if longer": {last, usage, time.Hour, false, 10 * time.Minute},
	} {
		var want time.Time
		if row.after >= 0 {
			want = last.Add(row.after)
		}
		if got := due(row.last, row.what, row.period, !row.lost); !got.Equal(want) {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestHowSoonTheHubShouldKnowWhatDiffers(t *testing.T) {
	written := func() facts {
		return facts{
			generation: 3, version: "v1.36.3", namespaces: collection{answered: true, listed: true},
			summary: summary{
				listed: true, nodes: clusterv1beta1.NodeSummary{Total: 2, Ready: 2, Sample: "a"},
				capacity: list("cpu", "10", "pods", "200"), allocatable: list("cpu", "8", "pods", "200"),
				available: list("cpu", "4", "pods", "150"),
			},
			credential: &clusterv1beta1.CredentialInUse{Sequence: 1},
		}
	}
	free := func(pairs ...string) func(*facts) { return func(f *facts) { f.summary.available = list(pairs...) } }
	for name, row := range map[string]struct {
		edit func(*facts)
		want change
	}{
		"nothing": {func(*facts) {}, none},
		"the generation alone, as of another heartbeat period": {func(f *facts) { f.generation = 4 }, none},
		"less than 5 % of a resource requested, or released":   {free("cpu", "3601m", "pods", "159"), none},
		"5 % of a resource requested":                          {free("cpu", "3600m", "pods", "150"), usage},
		"5 % of a resource released":                           {free("cpu", "4", "pods", "160"), usage},
		"5 %, with another generation":                         {func(f *facts) { f.generation = 4; free("cpu", "3", "pods", "150")(f) }, usage},
		"what is available is not known any more":              {func(f *facts) { f.summary.available = nil }, changed},
		"a node more":              {func(f *facts) { f.summary.nodes.Total = 3 }, changed},
		"a node that is not ready": {func(f *facts) { f.summary.nodes.Ready = 1 }, changed},
		"another capacity":         {func(f *facts) { f.summary.capacity = list("cpu", "11", "pods", "200") }, changed},
		"less allocatable": {func(f *facts) { f.summary.allocatable = list("cpu", "7999m", "pods", "200") },
			changed},
		"an API server that is not ready":    {func(f *facts) { f.unhealthy = "etcd is away" }, changed},
		"another version":                    {func(f *facts) { f.version = "v1.37.0" }, changed},
		"namespaces that cannot be listed":   {func(f *facts) { f.namespaces.listed = false }, changed},
		"how far the member is with leaving": {func(f *facts) { f.leaving = "2 objects left" }, urgent},
		"another credential":                 {func(f *facts) { f.credential = &clusterv1beta1.CredentialInUse{Sequence: 2} }, urgent},
		"a member that left":                 {func(f *facts) { f.left = true }, urgent},
		"a note":                             {func(f *facts) { f.note = "the token expired" }, urgent},
		"another address, and a node more": {func(f *facts) { f.hub.APIServerURL, f.summary.nodes.Total = "https://hub", 3 },
			urgent},
		"what cannot be pruned":                         {func(f *facts) { f.unpruned.Reason = "RemovalBlocked" }, urgent},
		"less of a resource that the nodes do not have": {free("cpu", "4", "pods", "150", "example.com/gpu", "1"), none},
	} {
		now := written()
		if row.edit(&now); now.since(written()) != row.want {
			t.Errorf("%s: got %d, want %d", name, now.since(written()), row.want)
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
		{
			Type: "Joined", Status: "True", Reason: "InternalMemberClusterJoined", Message: "the agent has joined", ObservedGeneration: 3,
			LastTransitionTime: before,
		},
		{
			Type: "Healthy", Status: "False", Reason: "InternalMemberClusterUnhealthy", Message: "etcd is away", ObservedGeneration: 3,
			LastTransitionTime: now,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// fakeMember lists its nodes, and its Pods, when the test sends them.
type fakeMember struct {
	nodes chan []any
	pods  chan []any
	sick  atomic.Bool
	// upgraded is set once the API server has another version.
	upgraded atomic.Bool
	// asked counts the questions for the health, and broken are failures of the watch of nodes.
	asked  atomic.Int32
	broken chan error
	// properties and configMaps are the sources of custom facts.
	properties, configMaps []any
}

func (m *fakeMember) Ready(context.Context) error {
	m.asked.Add(1)
	if m.sick.Load() {
		return errors.New("etcd is away")
	}
	return nil
}

func (m *fakeMember) Version(context.Context) (string, error) {
	if m.upgraded.Load() {
		return "v1.37.0", nil
	}
	return "v1.36.3", nil
}

func (m *fakeMember) FollowNodes(ctx context.Context, store cache.ReflectorStore, outcome func(error)) {
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case err := <-m.broken:
				outcome(err)
			}
		}
	}()
	replace(ctx, store, m.nodes)
}

func (m *fakeMember) FollowPods(ctx context.Context, store cache.ReflectorStore, _ func(error)) {
	_ = store.Replace(nil, "") // the store never fails
	replace(ctx, store, m.pods)
}

func replace(ctx context.Context, store cache.ReflectorStore, lists <-chan []any) {
	for {
		select {
		case <-ctx.Done():
			return
		case list := <-lists:
			_ = store.Replace(list, "") // the store never fails
		}
	}
}

func (m *fakeMember) FollowNamespaces(ctx context.Context, store cache.ReflectorStore, _ func(error)) {
	_ = store.Replace(nil, "") // the store never fails
	<-ctx.Done()
}

func (m *fakeMember) FollowClusterProperties(ctx context.Context, store cache.ReflectorStore, _ func(error)) {
	_ = store.Replace(m.properties, "") // the store never fails
	<-ctx.Done()
}

func (m *fakeMember) FollowFacts(ctx context.Context, store cache.ReflectorStore, _ func(error)) {
	_ = store.Replace(m.configMaps, "") // the store never fails
	<-ctx.Done()
}

// nodeOf is the only node of a member, with so much CPU.
func nodeOf(cpu string) []any {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	node.Status.Capacity, node.Status.Allocatable = list("cpu", cpu), list("cpu", cpu)
	return []any{node}
}

// podsOf are Pods that request so much CPU each.
func podsOf(cpu string, names ...string) (pods []any) {
	for _, name := range names {
		pods = append(pods, pod(name, corev1.PodSpec{Containers: []corev1.Container{container("cpu", cpu)}}))
	}
	return pods
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
	return reportingWith(t, nil, fail, script)
}

// reportingWith is reporting with the thresholds of the health check.
func reportingWith(t *testing.T, thresholds *clusterv1beta1.HealthCheck, fail func() error,
	script func(m *fakeMember, check chan<- struct{})) []write {
	t.Helper()
	var writes []write
	member := &fakeMember{nodes: make(chan []any), pods: make(chan []any), broken: make(chan error)}
	checks := make(chan struct{})
	begun := time.Now()
	hubReport := clusterv1beta1.InternalMemberCluster{Spec: clusterv1beta1.InternalMemberClusterSpec{
		HeartbeatPeriodSeconds: 30, HealthCheck: thresholds,
	}}
	reporter := Reporter{
		Member: member, Observe: func() Session { return Session{Report: &hubReport} }, HealthDue: checks,
		Clock: clock.RealClock{}, Explain: func(err error) string { return err.Error() },
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
	synctest.Wait() // the check at the start is over
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

// TestAReportWithoutAChangeIsRare lets the hub keep the reports of a member that is upgraded, and
// then lose the last one.
func TestAReportWithoutAChangeIsRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var writes []time.Duration
		var kept atomic.Pointer[clusterv1beta1.InternalMemberCluster]
		kept.Store(&clusterv1beta1.InternalMemberCluster{Spec: clusterv1beta1.InternalMemberClusterSpec{HeartbeatPeriodSeconds: 60}})
		change, checks := make(chan struct{}, 1), make(chan struct{})
		member := &fakeMember{nodes: make(chan []any), pods: make(chan []any), broken: make(chan error)}
		reporter := Reporter{
			Member: member, Observe: func() Session { return Session{Report: kept.Load()} }, Changed: change, HealthDue: checks,
			Clock: clock.RealClock{}, Explain: func(err error) string { return err.Error() },
			Write: func(_ context.Context, status clusterv1beta1.InternalMemberClusterStatus) error {
				writes = append(writes, time.Since(begun))
				copied := *kept.Load()
				copied.Status = status
				kept.Store(&copied)
				change <- struct{}{}
				return nil
			},
		}
		older := *kept.Load()
		older.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}
		stop := start(t, &reporter)
		time.Sleep(2*time.Hour + time.Minute)
		member.upgraded.Store(true)
		beat(checks, 10, time.Minute)
		kept.Store(&older)
		change <- struct{}{}
		time.Sleep(20 * time.Minute)
		stop()
		first, upgraded := firstLists, 2*time.Hour+11*time.Minute
		want := []time.Duration{first, first + time.Hour, first + 2*time.Hour, upgraded, upgraded + 10*time.Minute}
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

// TestTheHealthChangesAfterAsManyBeatsAsTheHubAsks also breaks a watch, which causes no further
// check while the results differ.
func TestTheHealthChangesAfterAsManyBeatsAsTheHubAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		thresholds := &clusterv1beta1.HealthCheck{FailureThreshold: 3, SuccessThreshold: 2}
		writes := reportingWith(t, thresholds, never, func(m *fakeMember, check chan<- struct{}) {
			m.nodes <- nodeList("a")
			m.sick.Store(true)
			beat(check, 2, 30*time.Second)
			m.sick.Store(false)
			beat(check, 1, 30*time.Second)
			m.sick.Store(true)
			beat(check, 2, 30*time.Second)
			m.broken <- errors.New("the watch is broken")
			beat(check, 1, 30*time.Second) // at 180 s, the third failure in a row
			m.sick.Store(false)
			beat(check, 2, 30*time.Second)
			time.Sleep(time.Second)
		})
		want := []write{{0, 1, "True"}, {180 * time.Second, 1, "False"}, {240 * time.Second, 1, "True"}}
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// beat sends heartbeats a period apart.
func beat(check chan<- struct{}, times int, period time.Duration) {
	for range times {
		time.Sleep(period)
		check <- struct{}{}
		synctest.Wait()
	}
}

func TestHealthyMemberIsAskedForItsHealthOnceInThirtySecondsAndASickOneAtEachBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reporting(t, never, func(m *fakeMember, check chan<- struct{}) {
			m.nodes <- nodeList("a")
			for name, row := range []struct {
				sick   bool
				period time.Duration
				want   int32
			}{{false, 10 * time.Second, 10}, {true, 10 * time.Second, 28}, {false, 28500 * time.Millisecond, 30}} {
				m.sick.Store(row.sick)
				before := m.asked.Load()
				if beat(check, 30, row.period); m.asked.Load()-before != row.want {
					t.Errorf("row %d: in 30 beats it was asked %d times, want %d", name, m.asked.Load()-before, row.want)
				}
			}
		})
	})
}

func TestMemberWhoseWatchBreaksIsAskedForItsHealthAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := reporting(t, never, func(m *fakeMember, check chan<- struct{}) {
			m.nodes <- nodeList("a")
			time.Sleep(15 * time.Second)
			m.sick.Store(true)
			m.broken <- errors.New("connection refused")
			time.Sleep(time.Second)
			m.sick.Store(false)
			beat(check, 1, 10*time.Second)
		})
		want := []write{{0, 1, "True"}, {15 * time.Second, 1, "False"}, {26 * time.Second, 1, "True"}}
		if diff := cmp.Diff(want, writes); diff != "" {
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

func TestPodsThatComeAndGoAreReportedWithTheHeartbeatsAndOnlyIfTheyTakeMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := reporting(t, never, func(m *fakeMember, _ chan<- struct{}) {
			m.nodes <- nodeOf("10")
			for range 5 { // a CronJob
				time.Sleep(30 * time.Second)
				m.pods <- podsOf("499m", "job")
				time.Sleep(30 * time.Second)
				m.pods <- nil
			}
			m.pods <- podsOf("4", "web")
			time.Sleep(5 * time.Second)
			m.pods <- podsOf("4", "web", "db") // less than a heartbeat later
			time.Sleep(time.Minute)
			m.nodes <- nodeOf("12")
			time.Sleep(time.Minute)
		})
		want := []write{
			{0, 1, "True"}, {5 * time.Minute, 1, "True"}, {5*time.Minute + 30*time.Second, 1, "True"},
			{6*time.Minute + 5*time.Second, 1, "True"},
		}
		if diff := cmp.Diff(want, writes); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
