package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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

// lived is a Cluster with a history: reasons with their age in hours.
func lived(workspace, name, version string, ages map[clusterv1beta1.HistoryReason]int) *fleet.Cluster {
	c := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: name, ResourceVersion: version}}
	for reason, age := range ages {
		c.Status.History = append(c.Status.History, clusterv1beta1.HistoryEntry{
			Time: metav1.NewTime(time.Now().Add(-time.Duration(age) * time.Hour)), Reason: reason,
		})
	}
	return c
}

// totals returns the sums of a plot in its own order.
func totals(p *plot) (sums []int) {
	for _, series := range p.Series {
		sums = append(sums, series.Total)
	}
	return sums
}

// inOneHour lets a test begin with at least a minute left of the hour, because plots count by
// hours.
func inOneHour(t *testing.T) {
	t.Helper()
	if left := time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)); left < time.Minute {
		t.Logf("waiting %s for the next hour", left)
		time.Sleep(left)
	}
}

func TestThePlotFollowsTheHistoriesThatAVisitorMaySee(t *testing.T) {
	inOneHour(t)
	s, all := remembered()
	const joined, lost, back = clusterv1beta1.HistoryJoined, clusterv1beta1.HistoryLost, clusterv1beta1.HistoryBack
	type ages = map[clusterv1beta1.HistoryReason]int
	expect := func(what, workspace string, want ...int) {
		t.Helper()
		p, err := s.plotOf(t.Context(), all, workspace, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, totals(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	s.cache.replace(clusters, []client.Object{
		lived("a", "web", "1", ages{joined: 30, lost: 2, back: 1}), lived("b", "web", "1", ages{joined: 3, "Cordoned": 1}),
	})
	s.cache.put(memberClusters, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", ResourceVersion: "1"},
		Status: clusterv1beta1.MemberClusterStatus{History: lived("", "", "", ages{joined: 0}).Status.History}})
	expect("a list", "", 2, 1, 1)
	expect("one workspace", "b", 1, 0, 0)
	tenant := &visitor{name: "tenant", pace: all.pace, renewed: all.renewed, rights: map[authorizationv1.ResourceAttributes]bool{}}
	for _, namespace := range []string{"", "a", "b"} {
		of := authorizationv1.ResourceAttributes{Verb: "list", Group: fleet.GroupVersion.Group, Resource: clusters, Namespace: namespace}
		tenant.rights[of] = namespace == "b"
	}
	tenant.rights[authorizationv1.ResourceAttributes{Verb: "list", Group: clusterv1beta1.GroupVersion.Group, Resource: memberClusters}] = false
	if p, err := s.plotOf(t.Context(), tenant, "", time.Now()); err != nil || fmt.Sprint(totals(p)) != "[1 0 0]" {
		t.Errorf("a tenant of another workspace sees %+v: %v", p, err)
	}
	s.cache.put(clusters, lived("a", "web", "2", ages{joined: 30, lost: 0}))
	expect("a change", "", 2, 0, 1)
	s.cache.put(clusters, lived("a", "web", "2", ages{joined: 0}))
	expect("the same version again", "", 2, 0, 1)
	s.cache.drop(clusters, "b/web")
	expect("a deletion", "", 1, 0, 1)
	s.cache.replace(clusters, []client.Object{lived("a", "web", "3", nil)})
	expect("another list", "", 1, 0, 0)
	s.cache.drop(memberClusters, "edge")
	if expect("nothing", "", 0, 0, 0); len(s.cache.trends) > 0 {
		t.Errorf("there are still %v", s.cache.trends)
	}
}

func TestGatheredChangesCountInTheirFirstAndLastHour(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 30, 0, 0, time.UTC)
	last := metav1.NewTime(now)
	member := lived("a", "web", "1", nil)
	member.Status.History = []clusterv1beta1.HistoryEntry{
		{Time: metav1.NewTime(now.Add(-25 * time.Hour)), LastTime: &last, Count: 7, Reason: clusterv1beta1.HistoryLost},
		{Time: metav1.NewTime(now.Add(-2 * time.Hour)), LastTime: &last, Count: 3, Reason: clusterv1beta1.HistoryBack},
	}
	want := []happened{{hourOf(now), 2, 6}, {hourOf(now) - 2, 1, 1}, {hourOf(now), 1, 2}}
	if got := happenedTo(member, now); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAPlotFillsItsPicture(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 30, 0, 0, time.UTC)
	hour := hourOf(now)
	p := draw(map[int64]perReason{hour: {2, 1, 0}, hour - 23: {0, 0, 1}, hour - 24: {9, 9, 9}}, now)
	want := []plotBar{
		{"p-joined", 231, 25, 8, 50}, {"p-back", 231, 0, 8, 25}, {"p-lost", 1, 75, 8, 25},
	}
	if diff := cmp.Diff(want, p.Bars); diff != "" || p.Axis != 75 || p.Text != "2 joined, 1 back, 1 lost in the last 24 hours" {
		t.Errorf("the axis is at %g, the text is %s (-want +got):\n%s", p.Axis, p.Text, diff)
	}
	if empty := draw(nil, now); len(empty.Bars) > 0 || len(empty.Hours) > 0 {
		t.Errorf("without changes there are %v", empty.Bars)
	}
}

// TestThePlotOfALargeFleetCostsNoLookAtEachMember has 10,000 members with 20 changes each.
func TestThePlotOfALargeFleetCostsNoLookAtEachMember(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	var members []client.Object
	for i := range 10_000 {
		member := lived(fmt.Sprintf("workspace-%d", i%20), fmt.Sprintf("edge-%05d", i), "1", nil)
		for age := range 20 {
			member.Status.History = append(member.Status.History, lived("", "", "", map[clusterv1beta1.HistoryReason]int{
				plottedReasons[age%3]: age}).Status.History...)
		}
		members = append(members, member)
	}
	s.cache.replace(clusters, members)
	if allocations := testing.AllocsPerRun(5, func() {
		if _, err := s.plotOf(t.Context(), all, "", time.Now()); err != nil {
			t.Error(err)
		}
	}); allocations > 1000 {
		t.Errorf("a plot takes %g allocations", allocations)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	request.AddCookie(&http.Cookie{Name: ownersCookie(request), Value: s.authenticator.(*keyAuthenticator).key})
	recorder := httptest.NewRecorder()
	s.Handler().ServeHTTP(recorder, request)
	const label = `aria-label="70000 joined, 70000 back, 60000 lost in the last 24 hours"`
	if recorder.Code != http.StatusOK || !strings.Contains(recorder.Body.String(), label) {
		t.Errorf("the page has the status %d and no such plot", recorder.Code)
	}
}

// TestTheWallReceivesTheChangesOfThePlot looks at the plot of a page without a reload.
func TestTheWallReceivesTheChangesOfThePlot(t *testing.T) {
	inOneHour(t)
	s, all := remembered()
	q, err := queryOf(fleetPath, map[string][]string{"view": {asWall}})
	if err != nil {
		t.Fatal(err)
	}
	const joined, lost = clusterv1beta1.HistoryJoined, clusterv1beta1.HistoryLost
	s.cache.put(clusters, lived("a", "web", "1", map[clusterv1beta1.HistoryReason]int{joined: 3}))
	f, err := s.look(t.Context(), all, q)
	if err != nil {
		t.Fatal(err)
	}
	wall := s.lookAtTiles(q, f.digest(), all)
	if c, err := wall.look(t.Context()); err != nil || c != nil {
		t.Errorf("an unchanged fleet: %v, %v", c, err)
	}
	s.cache.put(clusters, lived("a", "web", "2", map[clusterv1beta1.HistoryReason]int{joined: 3, lost: 1}))
	c, err := wall.look(t.Context())
	if err != nil || c == nil || c.event != "tiles" {
		t.Fatalf("a lost member: %v, %v", c, err)
	}
	if text := c.data.(tileChanges).Summary; !strings.Contains(text, `class="p-lost"`) {
		t.Errorf("the plot lacks the lost member: %s", text)
	}
}
