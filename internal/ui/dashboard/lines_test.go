package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testbrowser"
)

// requested is a request of some minutes ago.
func requested(name string, minutes int, state fleet.RegistrationState, cluster, clientID string) *entry {
	return entryOf(requests, asksSince(name, minutes, state, cluster, clientID))
}

func asksSince(name string, minutes int, state fleet.RegistrationState, cluster, clientID string) *fleet.ClusterRegistration {
	return &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: name, Labels: map[string]string{fleet.LabelRegistrationToken: "t"},
			CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Duration(minutes) * time.Minute)),
		},
		Spec: fleet.ClusterRegistrationSpec{ClientID: clientID}, Status: fleet.ClusterRegistrationStatus{
			State: state, ClusterName: cluster,
		}}
}

func delivered(name, reason string) *entry {
	ready := fleet.Condition{Type: fleet.ConditionReady, Status: corev1.ConditionTrue}
	if reason != "" {
		ready = fleet.Condition{Type: fleet.ConditionReady, Status: corev1.ConditionFalse, Reason: reason, Message: "as it is"}
	}
	return entryOf(bundles, &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet", Name: name, Labels: map[string]string{"team": "web"},
	},
		Status: fleet.BundleStatus{Conditions: []fleet.Condition{ready}}})
}

func TestWhatWaitsForSomebodyIsTheFirstLine(t *testing.T) {
	asking := []*entry{
		requested("a", 1, fleet.RegistrationGranted, "shop", "edge-1"), requested("b", 9, fleet.RegistrationGranted, "web", "edge-2"),
		requested("c", 5, fleet.RegistrationPending, "", "edge-3"),
		requested("d", 5, fleet.RegistrationPending, "", "edge-4"), requested("e", 8, fleet.RegistrationPending, "", "edge-5"),
		requested("f", 3, fleet.RegistrationDenied, "", "edge-6"), requested("g", 2, "", "", "edge-7"),
	}
	giving := []*entry{delivered("a", ""), delivered("b", "WaitApplied"), delivered("c", "ErrApplied"), delivered("d", "")}
	for what, c := range map[string]struct {
		query string
		all   []*entry
		order func(a, b *entry) int
		want  string
	}{
		"requests: who waits longest, then the newest, then who was granted": {"", asking, byDecision, "e c d g f a b"},
		"the name of a Cluster finds the request for it":                     {"name=web", asking, byDecision, "b"},
		"so does its client ID":                                              {"name=edge-3", asking, byDecision, "c"},
		"and its name":                                                       {"name=fleet/f", asking, byDecision, "f"},
		"requests in a state":                                                {"state=Granted", asking, byDecision, "a b"},
		"requests by a token": {
			"selector=" + fleet.LabelRegistrationToken + "%3Dt&state=Denied", asking, byDecision, "f",
		},
		"requests of another workspace":                   {"namespace=other", asking, byDecision, ""},
		"Bundles: what fails, what goes on, what is well": {"", giving, byUrgency, "c b a d"},
		"Bundles with labels":                             {"selector=team%3Dwhale", giving, byUrgency, ""},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, deliveriesPath+"?"+c.query, nil)
		q, err := queryOf(deliveriesPath, request.URL.Query())
		if err != nil {
			t.Fatal(err)
		}
		l := &listing{query: q}
		var got []string
		for _, e := range l.lines(q.matching(c.all), c.order).shown {
			got = append(got, e.bare)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", what, got, c.want)
		}
	}
}

func TestATableHasABoundedNumberOfLinesAndCountsAll(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	var asking, giving []client.Object
	for i := range 10_000 {
		state := fleet.RegistrationGranted
		if i == 7777 {
			state = fleet.RegistrationPending
		}
		asking = append(asking, asksSince(fmt.Sprintf("r-%05d", i), i, state, fmt.Sprintf("edge-%05d", i), ""))
		giving = append(giving, delivered(fmt.Sprintf("b-%05d", i), map[bool]string{true: "ErrApplied"}[i == 8888]).object)
	}
	s.cache.replace(requests, asking)
	s.cache.replace(bundles, giving)
	for _, verb := range []string{"create", "approve", "patch"} {
		for _, resource := range []string{tokens, requests} {
			all.allow(verb, resource)
		}
	}
	page := func(path string) string {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		request.AddCookie(&http.Cookie{Name: ownersCookie(request), Value: s.authenticator.(*keyAuthenticator).key})
		recorder := httptest.NewRecorder()
		s.Handler().ServeHTTP(recorder, request)
		if recorder.Code != http.StatusOK || recorder.Body.Len() > 200_000 {
			t.Errorf("%s: %d, %d bytes", path, recorder.Code, recorder.Body.Len())
		}
		return recorder.Body.String()
	}
	for path, want := range map[string][]string{
		registrationPath:                     {"9999 Granted", "1 Pending", "fleet/r-07777", "and 9800 more: search by name", `value="approve"`},
		registrationPath + "?name=edge-0999": {"10 Granted", "fleet/r-09990"},
		deliveriesPath:                       {"9999 Ready", "1 NotReady", "fleet/b-08888", "and 9800 more: search by name"},
		deliveriesPath + "?name=b-0999":      {"10 Ready", "fleet/b-09990"},
		deliveriesPath + "?name=nothing":     {"No delivery matches"},
	} {
		text := page(path)
		for _, words := range want {
			if !strings.Contains(text, words) {
				t.Errorf("%s does not say %q", path, words)
			}
		}
		if lines := strings.Count(text, `<th scope="row">`); lines > mostLines {
			t.Errorf("%s has %d lines", path, lines)
		}
	}
}

func TestASearchIsToldOfWhatItIsAboutAndOfNothingElse(t *testing.T) {
	s, all := remembered()
	put := func(name, version, reason string) {
		b := delivered(name, reason).object
		b.SetResourceVersion(version)
		s.cache.put(bundles, b)
	}
	put("shop", "1", "")
	put("lab", "1", "")
	q, err := queryOf(deliveriesPath, map[string][]string{"name": {"shop"}, "state": {"Ready"}})
	if err != nil {
		t.Fatal(err)
	}
	entries, stale, err := s.entries(t.Context(), all, bundles)
	if err != nil {
		t.Fatal(err)
	}
	page := s.lookAtLines(q, digestOf(q.matching(entries), stale), all, bundles)
	for _, step := range []struct {
		what, name, version, reason string
		want                        *change
	}{
		{"another one fails", "lab", "2", "ErrApplied", nil},
		{"it fails, and is in another state now", "shop", "2", "ErrApplied", reload},
		{"it is well again", "shop", "3", "", reload},
	} {
		put(step.name, step.version, step.reason)
		if got, err := page.look(t.Context()); err != nil || got != step.want {
			t.Errorf("%s: it is sent %v, %v", step.what, got, err)
		}
	}
}

func TestSearchingBundlesAndRequestsInTheBrowser(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("searched")
	for name, team := range map[string]string{"cart": "web", "mail": "post"} {
		r.check(r.Create(t.Context(), &fleet.Bundle{
			ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: name, Labels: map[string]string{"team": team}},
		}))
	}
	request := r.asking(workspace)
	const names = `[...document.querySelectorAll("#view tbody th")].map(t => t.textContent).join(", ")`
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	origin := b.JS("location.origin")
	b.Do(chromedp.Navigate(origin + "/deliveries?namespace=searched"))
	b.Becomes("what is in the workspace", names, "searched/cart, searched/mail")
	b.Do(chromedp.SendKeys(`#search [name=selector]`, "team=web"))
	b.Becomes("what has the labels, as they are typed", names, "searched/cart")
	if got := b.JS("location.pathname + location.search"); got != "/deliveries?selector=team%3Dweb&namespace=searched" {
		t.Errorf("the address is %s", got)
	}
	b.Becomes("it is live", liveness, "live")
	r.check(r.Create(t.Context(), &fleet.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "site", Labels: map[string]string{"team": "web"}},
	}))
	b.Becomes("another one that has them", names, "searched/cart, searched/site")
	b.Do(chromedp.Click(`.states a`))
	b.Becomes("only a state", `location.search.includes("state=New") && document.querySelector(".states a[aria-current]") !== null`, "true")

	b.Do(chromedp.Navigate(origin + "/registration?namespace=searched&name=edge"))
	b.Becomes("the request of a client ID", names, "searched/"+request.Name)
	b.Do(chromedp.Click(`button[value=deny]`))
	b.Becomes("after a decision the same is shown", `location.pathname + location.search`, "/registration?name=edge&namespace=searched")
}
