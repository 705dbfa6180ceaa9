package dashboard

import (
	gocmp "cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// memberOf is the entry of a Cluster; it is ready if there is no reason.
func memberOf(name, version, reason string, labels map[string]string, age time.Duration) *entry {
	c := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: name, Labels: labels, CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
	}}
	ready := fleet.Condition{Type: fleet.ConditionReady, Status: corev1.ConditionTrue}
	if reason != "" {
		ready.Status, ready.Reason = corev1.ConditionFalse, reason
	}
	c.Status.Conditions, c.Status.Agent.KubernetesVersion = []fleet.Condition{ready}, version
	return entryOf(clusters, c)
}

func namesOf(rows []row) string {
	var names []string
	for _, r := range rows {
		names = append(names, r.bare)
	}
	return strings.Join(names, " ")
}

func queryFrom(t *testing.T, text string) query {
	t.Helper()
	values, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	q, err := queryOf(fleetPath, values)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestTheTableIsFilteredAndSortedAsItsAddressSays(t *testing.T) {
	members := []*entry{
		memberOf("a", "v1.9.1", "", map[string]string{"provider.cattle.io": "k3s"}, time.Hour),
		memberOf("b", "v1.10.0", "AgentLost", map[string]string{"provider": "rke2"}, 3*time.Hour),
		memberOf("c", "v1.9.1", "", map[string]string{"provider": "rke2", "provider.cattle.io": "k3s"}, 2*time.Hour),
	}
	for text, want := range map[string]string{
		"":                            "a b c",
		"sort=-name":                  "c b a",
		"sort=version":                "a c b",
		"sort=-version":               "b a c",
		"sort=state":                  "b a c",
		"sort=age":                    "a c b",
		"sort=-age":                   "b c a",
		"version=v1.9.1":              "a c",
		"provider=k3s":                "a c",
		"provider=rke2":               "b",
		"kind=MemberCluster":          "",
		"kind=Cluster&state=Lost":     "b",
		"name=a&version=v1.10.0":      "",
		"selector=provider&sort=name": "b c",
	} {
		q := queryFrom(t, text)
		if got := namesOf(q.table(q.inState(q.matching(members))).Rows); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	filters := queryFrom(t, "")
	if diff := cmp.Diff([]filter{
		{"Version", "version", "", []choice{{"v1.9.1", 2}, {"v1.10.0", 1}}}, {"Provider", "provider", "", []choice{{"k3s", 2}, {"rke2", 1}}},
	}, filters.filtersOf(members)); diff != "" {
		t.Error(diff)
	}
}

func TestTheTableShowsTheColumnsOfItsAddress(t *testing.T) {
	labels := func(q query) (names []string) {
		for _, h := range q.table(nil).Headings {
			names = append(names, strings.TrimSpace(h.Label+" "+h.Order))
		}
		return names
	}
	q := queryFrom(t, "column=why&column=kind&sort=-kind")
	if diff := cmp.Diff([]string{"Name", "Kind descending", "Why"}, labels(q)); diff != "" {
		t.Error(diff)
	}
	if link := q.table(nil).Headings[1].Link; link != "/?column=why&column=kind&sort=kind" {
		t.Errorf("a click sorts by %s", link)
	}
	usual := []string{"Name ascending", "State", "Version", "Nodes", "Bundles", "Last seen", "Why"}
	if diff := cmp.Diff(usual, labels(queryFrom(t, ""))); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"column=color", "sort=color", "page=0", "page=x", "view=list", "group=colour", "selector=%3D%3D"} {
		values, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		q, err := queryOf(fleetPath, values)
		if err == nil || q.Problem == "" || len(q.matching([]*entry{memberOf("a", "", "", nil, 0)})) > 0 {
			t.Errorf("%s is accepted: %v, %q", text, err, q.Problem)
		}
	}
}

func TestTheTableHasPages(t *testing.T) {
	var members []*entry
	for i := range 250 {
		members = append(members, memberOf(fmt.Sprintf("m%03d", i), "", "", nil, 0))
	}
	for text, want := range map[string]string{
		"":                         "1 to 100, m000, before , after /?page=2",
		"page=2":                   "101 to 200, m100, before /, after /?page=3",
		"page=3&sort=name":         "201 to 250, m200, before /?page=2, after ",
		"page=9223372036854775807": "201 to 250, m200, before /?page=2, after ",
		"page=9":                   "201 to 250, m200, before /?page=2, after ",
	} {
		page := queryFrom(t, text).table(members)
		got := fmt.Sprintf("%d to %d, %s, before %s, after %s", page.First, page.Last, page.Rows[0].bare, page.Previous, page.Next)
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestTheHealthBarHasTheShareOfEachTone(t *testing.T) {
	got := barOf([]count{{State: "Lost", Count: 1}, {State: "NotReady", Count: 2}, {State: "Ready", Count: 5}, {State: "Revoked", Count: 2}})
	if diff := cmp.Diff([]segment{{0, 500, toneOK}, {500, 200, toneWarn}, {700, 300, toneCritical}}, got); diff != "" {
		t.Error(diff)
	}
	if got := barOf(nil); got != nil {
		t.Errorf("an empty fleet has %v", got)
	}
}

func TestAnActiveFilterHasALinkWithoutIt(t *testing.T) {
	want := []chip{{"name: web", "/?sort=age&state=Lost"}, {"state: Lost", "/?name=web&sort=age"}}
	if diff := cmp.Diff(want, queryFrom(t, "name=web&state=Lost&sort=age&page=3").Chips()); diff != "" {
		t.Error(diff)
	}
}

func TestVersionsAreComparedByTheirNumbers(t *testing.T) {
	ordered := []string{"", "edge-2", "edge-10", "edge-10a", "v1.9.1", "v1.10.0-rc.1", "v1.10.1", "v2"}
	for i, a := range ordered {
		for k, b := range ordered {
			if got := compareVersions(a, b); got != gocmp.Compare(i, k) {
				t.Errorf("%q to %q: %d", a, b, got)
			}
			if got := strings.Compare(naturalKey(a), naturalKey(b)); got != gocmp.Compare(i, k) {
				t.Errorf("the keys of %q and %q: %d", a, b, got)
			}
		}
	}
}

// TestAKeyHasTheOrderOfItsValue compares short texts, with all characters that matter, and times.
func TestAKeyHasTheOrderOfItsValue(t *testing.T) {
	texts := []string{""}
	for range 4 {
		for _, text := range texts {
			for _, next := range []string{"0", "1", "9", "-", "a", "\u00fc"} {
				texts = append(texts, text+next)
			}
		}
		slices.Sort(texts)
		texts = slices.Compact(texts)
	}
	for i, a := range texts {
		b := texts[i*7919%len(texts)]
		if got, want := strings.Compare(naturalKey(a), naturalKey(b)), compareVersions(a, b); got != want {
			t.Errorf("the keys of %q and %q: %d, want %d", a, b, got, want)
		}
	}
	now := time.Now()
	times := []time.Time{now.Add(time.Hour), now.Add(time.Nanosecond), now, time.Unix(0, 0), time.Unix(-1, 999), {}}
	if !slices.IsSortedFunc(times, func(a, b time.Time) int { return strings.Compare(latestFirst(a), latestFirst(b)) }) {
		t.Error("times are not in order")
	}
	if latestFirst(now) != latestFirst(now.UTC()) {
		t.Error("one time has two keys")
	}
}

// TestTheRowsAloneAreThoseOfThePage compares the answers to a scrolling browser with whole pages.
func TestTheRowsAloneAreThoseOfThePage(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	for i := range 250 {
		s.cache.put(clusters, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: fmt.Sprintf("edge-%03d", i), Labels: map[string]string{"env": fmt.Sprint(i % 3)},
		}, Status: fleet.ClusterStatus{Agent: fleet.AgentStatus{KubernetesVersion: fmt.Sprintf("v1.%d.0", i%40)}}})
	}
	ask := func(path string) (int, string) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		request.AddCookie(&http.Cookie{Name: ownersCookie(request), Value: s.authenticator.(*keyAuthenticator).key})
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, request)
		return recorder.Code, recorder.Body.String()
	}
	for query, first := range map[string]string{
		"": "edge-000", "?page=3": "edge-200", "?page=9": "edge-200", "?sort=-version&page=2": "edge-183",
		"?selector=env%3D2&column=age": "edge-002", "?state=Lost": "",
	} {
		_, whole := ask("/" + query)
		status, alone := ask("/rows" + query)
		rows := rowsIn(alone)
		if status != http.StatusOK || rows != rowsIn(whole) || !strings.Contains(rows, first) || strings.Contains(alone, "<h1") {
			t.Errorf("/rows%s: %d, %.300s", query, status, alone)
		}
	}
	if status, text := ask("/rows?page=x"); status != http.StatusBadRequest || strings.Contains(text, "<td") {
		t.Errorf("a bad page: %d, %s", status, text)
	}
}

// rowsIn returns the rows of the table of members in a page.
func rowsIn(text string) string {
	_, rows, _ := strings.Cut(text, "<tbody>")
	rows, _, _ = strings.Cut(rows, "</tbody>")
	return strings.TrimSpace(rows)
}
