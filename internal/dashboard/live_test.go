package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testbrowser"
)

// remembered is a dashboard that has read what there is, and a visitor who may see all members, without an API server.
func remembered() (*Server, *visitor) {
	s := &Server{roll: newRoll()}
	all := &visitor{name: "admin", renewed: time.Now().Add(time.Hour), rights: map[authorizationv1.ResourceAttributes]bool{}}
	for _, resource := range []string{clusters, memberClusters} {
		s.roll.reset(resource)
		all.rights[authorizationv1.ResourceAttributes{Verb: "list", Group: kinds[resource].group, Resource: resource}] = true
	}
	return s, all
}

func TestTenThousandMembersInTheBrowser(t *testing.T) {
	s, all := remembered()
	s.door, s.ctx = newOwnersDoor(all), t.Context()
	put := func(i int, state corev1.ConditionStatus, version string) {
		s.roll.put(clusters, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("workspace-%d", i%20), Name: fmt.Sprintf("edge-%05d", i), ResourceVersion: version},
			Status: fleet.ClusterStatus{Conditions: []fleet.Condition{{Type: fleet.ConditionReady, Status: state, Reason: "AgentLost", Message: "no heartbeat"}}}})
	}
	for i := range 10_000 {
		put(i, corev1.ConditionTrue, "1")
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	b := testbrowser.New(t) // ends before the server does
	b.Do(chromedp.Navigate(server.URL+s.Entrance()), chromedp.WaitVisible("#view"))
	const tiles = `document.querySelectorAll(".tiles a").length`
	b.Becomes("all are shown", tiles, "10000")
	b.Becomes("it is live", liveness, "live")
	b.JS("window.same = document.getElementById('view')")
	put(4321, corev1.ConditionFalse, "2")
	b.Becomes("one that is lost", `document.getElementById("workspace-1/edge-04321").className`, "s-lost new")
	s.roll.drop(clusters, "workspace-1/edge-04321")
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

// TestAPageIsLoadedAgainIfAProblemEndsBeforeItIsLive would have it say for ever that it may not be what is so now.
func TestAPageIsLoadedAgainIfAProblemEndsBeforeItIsLive(t *testing.T) {
	ctx := context.Background()
	s, all := remembered()
	s.roll.put(clusters, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "web"}})
	everything, err := queryOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, lookers := range map[string]func(have string) looker{
		"tiles":  func(have string) looker { return s.lookAtTiles(everything, have, all) },
		"member": func(have string) looker { return s.lookAt(have, all, "fleet/web", clusters, memberClusters) },
	} {
		t.Run(name, func(t *testing.T) {
			shown := func() string {
				entries, stale, err := s.entries(ctx, all, clusters, memberClusters)
				if err != nil {
					t.Fatal(err)
				}
				return digestOf(entries, stale)
			}
			s.roll.fail(memberClusters, errors.New("no answer"))
			whileItIs := shown()
			s.roll.fail(memberClusters, nil)
			look := lookers(whileItIs)
			if c, err := look(ctx); err != nil || c != reload {
				t.Errorf("it is sent %v, %v", c, err)
			}
			if c, err := look(ctx); err != nil || c != nil {
				t.Errorf("it is sent %v, %v, although nothing is different", c, err)
			}
			if c, err := lookers(shown())(ctx); err != nil || c != nil {
				t.Errorf("what shows it all is sent %v, %v", c, err)
			}
		})
	}
}
