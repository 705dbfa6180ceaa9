package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// slow is a Cluster with delays of its heartbeats: in the present hour, and in the hours before it.
func slow(workspace, name, version string, seconds ...int32) *fleet.Cluster {
	c := lived(workspace, name, version, nil)
	c.Status.HeartbeatDelay = delaysSince(0, seconds...)
	return c
}

func delaysSince(ago int, seconds ...int32) *clusterv1beta1.HeartbeatDelay {
	hour := time.Now().Add(-time.Duration(ago) * time.Hour).Truncate(time.Hour)
	return &clusterv1beta1.HeartbeatDelay{Hour: metav1.NewTime(hour), Seconds: seconds}
}

// figures returns the figures of a plot, the newest hour first; none for a gap.
func figures(p *delayPlot) (all [][]int) {
	if p == nil {
		return nil
	}
	for _, hour := range p.Hours {
		all = append(all, hour.Figures)
	}
	return all
}

func TestThePlotFollowsTheDelaysThatAVisitorMaySee(t *testing.T) {
	inOneHour(t)
	s, all := remembered()
	tenant := &visitor{name: "tenant", pace: all.pace, renewed: all.renewed, rights: map[authorizationv1.ResourceAttributes]bool{}}
	for _, namespace := range []string{"", "a", "b"} {
		of := authorizationv1.ResourceAttributes{Verb: "list", Group: fleet.GroupVersion.Group, Resource: clusters, Namespace: namespace}
		tenant.rights[of] = namespace == "b"
	}
	tenant.rights[authorizationv1.ResourceAttributes{Verb: "list", Group: clusterv1beta1.GroupVersion.Group, Resource: memberClusters}] = false
	expect := func(what string, v *visitor, workspace string, want ...[]int) {
		t.Helper()
		p, err := s.plotOf(t.Context(), v, workspace, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, figures(p.Delay)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	expect("no members", all, "")
	old := lived("b", "old", "1", nil)
	old.Status.HeartbeatDelay = delaysSince(plottedHours, 40)
	ahead := lived("b", "ahead", "1", nil)
	ahead.Status.HeartbeatDelay = delaysSince(-2, 40)
	s.cache.replace(clusters, []client.Object{
		slow("a", "web", "1", 3, -1, -1, 20), slow("b", "web", "1", 1), slow("b", "none", "1"), old, ahead, lived("b", "silent", "1", nil),
	})
	s.cache.put(memberClusters, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", ResourceVersion: "1"},
		Status: clusterv1beta1.MemberClusterStatus{HeartbeatDelay: delaysSince(1, 7)}})
	expect("a list", all, "", []int{1, 3, 3}, []int{7, 7, 7}, nil, []int{20, 20, 20})
	expect("one workspace", all, "b", []int{1, 1, 1})
	expect("a tenant of the other workspace", tenant, "", []int{1, 1, 1})
	s.cache.put(clusters, slow("a", "web", "2", 9))
	expect("a change", all, "", []int{1, 9, 9}, []int{7, 7, 7})
	s.cache.drop(clusters, "a/web")
	expect("a deletion", all, "", []int{1, 1, 1}, []int{7, 7, 7})
	s.cache.replace(clusters, []client.Object{slow("a", "web", "3", -1, 2)})
	expect("another list", all, "", nil, []int{2, 7, 7})
	s.cache.drop(clusters, "a/web")
	s.cache.drop(memberClusters, "edge")
	if expect("nothing", all, ""); len(s.cache.delays) > 0 {
		t.Errorf("there are still %v", s.cache.delays)
	}
}

func TestDelaysLeaveThePlotAfterADay(t *testing.T) {
	now := time.Now()
	e := entryOf(clusters, slow("a", "web", "1", 3, 4))
	trends := delayTrends{}
	trends.add(e, 1, now)
	other := entryOf(clusters, slow("a", "other", "1", 5))
	trends.add(other, 1, now.Add(23*time.Hour))
	kept := map[delayed]int32{{int32(hourOf(now)), 3}: 1, {int32(hourOf(now)), 5}: 1}
	if diff := cmp.Diff(kept, trends[trendOf{clusters, "a"}].members, cmp.AllowUnexported(delayed{})); diff != "" {
		t.Errorf("after 23 hours (-want +got):\n%s", diff)
	}
	trends.add(e, -1, now.Add(24*time.Hour))
	if trends.add(other, -1, now.Add(24*time.Hour)); len(trends) > 0 {
		t.Errorf("a day later there are still %v", trends)
	}
}

func TestThePlotOfDelaysShowsGapsAsGaps(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 30, 0, 0, time.UTC)
	hour := int32(hourOf(now))
	members := map[delayed]int32{
		{hour, 0}: 98, {hour, 11}: 1, {hour, 60}: 1, // the present hour: one very slow member
		{hour - 3, 33}: 1, {hour - 24, 99}: 1,
	}
	p := delaysOfFleet(members, now)
	want := []plotBar{
		{"axis", 230, 99, 10, 1}, {"p-most", 231, 66, 8, 33},
		{"axis", 200, 99, 10, 1}, {"p-median", 201, 0, 8, 99},
	}
	if diff := cmp.Diff(want, p.Bars); diff != "" {
		t.Errorf("bars (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]int{{0, 11, 60}, nil, nil, {33, 33, 33}}, figures(p)); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	const text = "heartbeat delay in the last 24 hours: median at most 33 s, 99 of 100 members at most 33 s, longest 60 s; " +
		"hours without a measured heartbeat: 2"
	if p.Text != text {
		t.Errorf("the text is %q, want %q", p.Text, text)
	}
	if none := delaysOfFleet(map[delayed]int32{{hour - 24, 9}: 1, {hour + 1, 9}: 1}, now); none != nil {
		t.Errorf("of other hours there is %v", none)
	}
	html, err := part("fleet", "delayed", p)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`aria-label="` + text + `"`, `<td class="soft" colspan="3">not measured</td>`, `<td class="number">60 s</td>`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %s: %s", want, html)
		}
	}
}

func TestTheTimelineShowsTheDelaysOfTheMember(t *testing.T) {
	inOneHour(t)
	mc := &clusterv1beta1.MemberCluster{Status: clusterv1beta1.MemberClusterStatus{HeartbeatDelay: delaysSince(1, 5, -1, 7)}}
	p := delaysOfMember(mc, time.Now())
	if diff := cmp.Diff([][]int{nil, {5}, nil, {7}}, figures(p)); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	if p.Text != "heartbeat delay in the last 24 hours: longest 7 s; hours without a measured heartbeat: 1" {
		t.Errorf("the text is %q", p.Text)
	}
	html, err := part("member", "view", page{Body: &shownMember{Name: "edge", Tab: tabTimeline, Delay: p}})
	if err != nil || !strings.Contains(html, p.Text) {
		t.Errorf("the tab lacks %q: %v", p.Text, err)
	}
	if delaysOfMember(&clusterv1beta1.MemberCluster{}, time.Now()) != nil {
		t.Error("a member without heartbeats has a plot")
	}
}

// TestTheDelaysOfALargeFleetNeedLittle has 10,000 members with a delay in each hour.
func TestTheDelaysOfALargeFleetNeedLittle(t *testing.T) {
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	fill := func(workspaces int, delays bool) (*Server, *visitor, uint64) {
		before := heap()
		s, all := remembered()
		s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
		for i := range 10_000 {
			member := lived(fmt.Sprintf("workspace-%d", i%workspaces), fmt.Sprintf("edge-%05d", i), "1", nil)
			if delays {
				seconds := make([]int32, plottedHours)
				for hour := range seconds {
					seconds[hour] = int32(i * (hour + 7) % 120)
				}
				member.Status.HeartbeatDelay = delaysSince(0, seconds...)
			}
			s.cache.put(clusters, slim(member))
		}
		return s, all, heap() - before
	}
	for _, workspaces := range []int{20, 10_000} {
		without, _, least := fill(workspaces, false)
		s, all, most := fill(workspaces, true)
		runtime.KeepAlive(without)
		t.Logf("%d workspaces: %.1f MiB for delays", workspaces, float64(most-least)/(1<<20))
		if most-least > 12<<20 {
			t.Errorf("the delays in %d workspaces need %d bytes", workspaces, most-least)
		}
		if allocations := testing.AllocsPerRun(5, func() {
			if _, err := s.plotOf(t.Context(), all, "", time.Now()); err != nil {
				t.Error(err)
			}
		}); workspaces == 20 && allocations > 1000 {
			t.Errorf("a plot takes %g allocations", allocations)
		}
		began := time.Now()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.AddCookie(&http.Cookie{Name: ownersCookie(request), Value: s.authenticator.(*keyAuthenticator).key})
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, request)
		if !strings.Contains(recorder.Body.String(), "longest 119 s") {
			t.Errorf("the page has the status %d and no such plot", recorder.Code)
		}
		t.Logf("%d workspaces: the page takes %s", workspaces, time.Since(began))
	}
}
