package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	gocmp "github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testbrowser"
)

// remembered is a dashboard that has read what there is, and a visitor who may see and change all
// members, without an API server.
func remembered() (*Server, *visitor) {
	s := &Server{cache: newFleetCache()}
	all := &visitor{
		name: "admin", pace: flowcontrol.NewFakeAlwaysRateLimiter(), renewed: time.Now().Add(time.Hour),
		rights: map[authorizationv1.ResourceAttributes]bool{},
	}
	for resource := range kinds {
		s.cache.replace(resource, nil)
		for _, verb := range []string{"list", "create", "patch", "approve", "cordon", "quarantine"} {
			all.allow(verb, resource)
		}
	}
	for _, verb := range evictionVerbs {
		all.allow(verb, evictions)
	}
	return s, all
}

// allow gives a visitor a right in all workspaces, without a request to an API server.
func (v *visitor) allow(verb, resource string) {
	for _, namespace := range []string{"", "fleet"} {
		v.rights[authorizationv1.ResourceAttributes{Verb: verb, Group: groupOf(resource), Resource: resource, Namespace: namespace}] = true
	}
}

func TestTenThousandMembersInTheBrowser(t *testing.T) {
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	put := func(i int, state corev1.ConditionStatus, version string) {
		s.cache.put(clusters, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("workspace-%d", i%20), Name: fmt.Sprintf("edge-%05d", i), ResourceVersion: version,
		},
			Status: fleet.ClusterStatus{
				Conditions: []fleet.Condition{{Type: fleet.ConditionReady, Status: state, Reason: "AgentLost", Message: "no heartbeat"}},
			}})
	}
	for i := range 10_000 {
		put(i, corev1.ConditionTrue, "1")
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	b := testbrowser.New(t) // ends before the server does
	b.Do(chromedp.Navigate(server.URL+s.Entrance()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.Navigate(server.URL+"/?view=wall"), chromedp.WaitVisible("#view"))
	const tiles = `document.querySelectorAll(".tiles a").length`
	b.Becomes("all are shown", tiles, "10000")
	b.Becomes("it is live", liveness, "live")
	b.JS("window.same = document.getElementById('view')")
	put(4321, corev1.ConditionFalse, "2")
	b.Becomes("one that is lost", `document.getElementById("m:workspace-1/edge-04321").className`, "shape s-lost t-critical new")
	s.cache.drop(clusters, "workspace-1/edge-04321")
	b.Becomes("one less", tiles, "9999")
	if b.JS("window.same === document.getElementById('view')") != "true" {
		t.Error("the page was loaded again for one member")
	}
	for i := range 1000 {
		put(i, corev1.ConditionFalse, "2")
	}
	b.Becomes("a thousand that are lost at once", `document.querySelectorAll(".tiles .s-lost").length`, "1000")
	b.Becomes("how many that are", `document.querySelector(".states .s-lost").textContent`, "1000 Lost")
	b.Do(chromedp.SendKeys("#search [name=name]", "edge-0999"))
	b.Becomes("what is searched for", tiles, "10")
}

// TestAPageIsLoadedAgainIfAProblemEndsBeforeItIsLive checks that the page loads again. Otherwise it
// would warn for ever that it may be out of date.
func TestAPageIsLoadedAgainIfAProblemEndsBeforeItIsLive(t *testing.T) {
	ctx := context.Background()
	s, all := remembered()
	s.cache.put(clusters, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "web"}})
	everything, err := queryOf(fleetPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.cache.fail(memberClusters, errors.New("no answer"))
	fleetWhile, err := s.look(ctx, all, everything)
	if err != nil {
		t.Fatal(err)
	}
	entries, stale, err := s.entriesNamed(ctx, all, "fleet/web", clusters, memberClusters)
	if err != nil {
		t.Fatal(err)
	}
	s.cache.fail(memberClusters, nil)
	for name, lookers := range map[string]*looker{
		"tiles":  s.lookAtTiles(everything, fleetWhile.digest(), all),
		"member": s.lookAt(digestOfAll(entries, stale), all, "fleet/web", clusters, memberClusters),
	} {
		if c, err := lookers.look(ctx); err != nil || c != reload {
			t.Errorf("%s: it is sent %v, %v", name, c, err)
		}
		if c, err := lookers.look(ctx); err != nil || c != nil {
			t.Errorf("%s: it is sent %v, %v, although nothing is different", name, c, err)
		}
	}
}

// readThen calls a function whenever an object has been read.
type readThen struct {
	client.Client
	then func()
}

func (c readThen) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, into, options...)
	c.then()
	return err
}

func TestWhatChangesWhileThePageOfAnObjectIsMadeIsNotMissed(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("made")
	made := metav1.ObjectMeta{Namespace: workspace, Name: "web"}
	s, all := remembered()
	for resource, page := range map[string]struct {
		path   string
		show   pageFunc
		object client.Object
	}{
		clusters: {"/members/made/web", s.member, &fleet.Cluster{ObjectMeta: made}},
		bundles:  {"/deliveries/bundles/made/web", s.delivery, &fleet.Bundle{ObjectMeta: made}},
		tokens:   {"/tokens/made/web", s.token, &fleet.ClusterRegistrationToken{ObjectMeta: made}},
	} {
		r.check(client.IgnoreAlreadyExists(r.Create(t.Context(), page.object)))
		r.check(r.Get(t.Context(), client.ObjectKeyFromObject(page.object), page.object))
		s.cache.put(resource, page.object)
		all.rights[authorizationv1.ResourceAttributes{
			Verb: "list", Group: kinds[resource].group, Resource: resource, Namespace: workspace,
		}] = true
		changed := page.object.DeepCopyObject().(client.Object)
		changed.SetResourceVersion("changed")
		all.Client = readThen{r.Client, func() { s.cache.put(resource, changed) }}
		asked, answered := httptest.NewRequest(http.MethodGet, page.path, nil), httptest.NewRecorder()
		for name, value := range map[string]string{"resource": resource, "namespace": workspace, "name": made.Name} {
			asked.SetPathValue(name, value)
		}
		r.check(page.show(answered, asked, all))
		_, live, _ := strings.Cut(answered.Body.String(), `data-live="`)
		live, _, _ = strings.Cut(live, `"`)
		to, err := url.Parse(html.UnescapeString(live))
		r.check(err)
		looker, err := s.lookerOf(asked.URL, to.Query().Get("have"), all)
		r.check(err)
		if c, err := looker.look(t.Context()); err != nil || c != reload {
			t.Errorf("%s: it is sent %v, %v", page.path, c, err)
		}
		if c, err := looker.look(t.Context()); err != nil || c != nil {
			t.Errorf("%s: it is sent %v, %v, although nothing is different", page.path, c, err)
		}
	}
}

func TestABrowserIsSentWhatAPageSaysOtherwiseAndNothingElse(t *testing.T) {
	ctx := context.Background()
	s, all := remembered()
	put := func(version, nodes string, seen time.Time, ready corev1.ConditionStatus) {
		s.cache.put(clusters, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "web", ResourceVersion: version},
			Status: fleet.ClusterStatus{
				Agent: fleet.AgentStatus{LastSeen: metav1.NewTime(seen)}, Display: fleet.ClusterDisplay{ReadyNodes: nodes},
				Conditions: []fleet.Condition{{Type: fleet.ConditionReady, Status: ready, Reason: "AgentLost", Message: "no heartbeat"}}}})
	}
	put("1", "2/2", time.Now(), corev1.ConditionTrue)
	lost, err := queryOf(fleetPath, map[string][]string{"state": {"Lost"}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.look(ctx, all, lost)
	if err != nil {
		t.Fatal(err)
	}
	entries, stale, err := s.entriesNamed(ctx, all, "fleet/web", clusters)
	if err != nil {
		t.Fatal(err)
	}
	fleetPage, page := s.lookAtTiles(lost, f.digest(), all), s.lookAt(digestOfAll(entries, stale), all, "fleet/web", clusters)
	tiles, endTiles := s.cache.read("", fleetPage.resources...)
	defer endTiles()
	one, endOne := s.cache.read("fleet/web", page.resources...)
	defer endOne()
	other, endOther := s.cache.read("fleet/shop", clusters)
	defer endOther()
	looks := func(what string, l *looker, r *reader, woken bool, want string) *change {
		t.Helper()
		select {
		case <-r.changed:
			if !woken {
				t.Errorf("%s: it wakes who does not show it", what)
			}
		default:
			if woken {
				t.Errorf("%s: it wakes nobody", what)
			}
		}
		c, err := l.look(ctx)
		if got := cmp.Or(c, &change{}).event; err != nil || got != want {
			t.Errorf("%s: it is sent %q instead of %q, %v", what, got, want, err)
		}
		return c
	}
	looks("nothing", fleetPage, tiles, false, "")
	looks("nothing", page, one, false, "")
	put("2", "2/2", time.Now().Add(time.Minute), corev1.ConditionTrue)
	looks("a heartbeat, in the table", fleetPage, tiles, false, "")
	looks("a heartbeat, on its page", page, one, true, "reload")
	put("3", "2/2", time.Now(), corev1.ConditionFalse)
	c := looks("it is lost, in a view of those that are", fleetPage, tiles, true, "tiles")
	if put := c.data.(tileChanges).Put; len(put) != 1 || put[0].ID != "m:fleet/web" {
		t.Errorf("put is %v", put)
	}
	looks("it is lost, on its page", page, one, true, "reload")
	s.cache.put(clusters, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "lab", ResourceVersion: "1"}})
	c = looks("another one that is in another state: only the numbers change", fleetPage, tiles, true, "tiles")
	if diff := gocmp.Diff(tileChanges{Put: []tileChange{}, Gone: []string{}},
		tileChanges{c.data.(tileChanges).Put, c.data.(tileChanges).Gone, ""}); diff != "" ||
		!strings.Contains(c.data.(tileChanges).Summary, "2 members") {
		t.Errorf("it is sent %v", c.data)
	}
	looks("another one, on its page", page, one, false, "")
	s.cache.put(tokens, &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "t", ResourceVersion: "1"}})
	looks("a token, which the fleet does not show", fleetPage, tiles, false, "")
	s.cache.put(requests, &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "r", ResourceVersion: "1"},
		Status: fleet.ClusterRegistrationStatus{
			State: fleet.RegistrationPending, Reason: "ApprovalRequired", Message: "somebody has to approve it"}})
	looks("a request, in a view of some members", fleetPage, tiles, true, "")
	select {
	case <-other.changed:
		t.Error("the page of one member is woken by another")
	default:
	}
}

func TestWhatFirstNamesAlsoWhatIsNoMember(t *testing.T) {
	s, all := remembered()
	for i, state := range []fleet.RegistrationState{fleet.RegistrationPending, fleet.RegistrationGranted, fleet.RegistrationWaiting} {
		s.cache.put(requests, &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: fmt.Sprint("r", i),
			ResourceVersion: "1"}, Status: fleet.ClusterRegistrationStatus{
			State: state, Reason: map[fleet.RegistrationState]string{fleet.RegistrationPending: "ApprovalRequired",
				fleet.RegistrationWaiting: "Preparing"}[state], Message: "as it is"}})
	}
	for name, reason := range map[string]string{"broken": "ErrApplied", "moving": "WaitApplied"} {
		s.cache.put(bundles, &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, ResourceVersion: "1"},
			Status: fleet.BundleStatus{
				Conditions: []fleet.Condition{{Type: fleet.ConditionReady, Status: corev1.ConditionFalse, Reason: reason, Message: "as it is"}}}})
	}
	of := func(query string) (names []string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		q, err := queryOf(fleetPath, values)
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.look(context.Background(), all, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, trouble := range f.summarize(time.Now()).Troubles {
			for _, one := range trouble.Shown {
				names = append(names, one.Name+" "+one.Path)
			}
		}
		slices.Sort(names)
		return names
	}
	if diff := gocmp.Diff([]string{"Bundle fleet/broken /deliveries/bundles/fleet/broken",
		"ClusterRegistration fleet/r0 /requests/fleet/r0"}, of("")); diff != "" {
		t.Error(diff)
	}
	for _, query := range []string{"namespace=other", "name=web", "selector=env%3Dprod", "state=Lost"} {
		if names := of(query); len(names) > 0 {
			t.Errorf("of %s it names %v", query, names)
		}
	}
}
