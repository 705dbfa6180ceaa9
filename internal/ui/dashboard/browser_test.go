package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	musterv1alpha1 "github.com/muster-fleet/muster/api/muster/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testbrowser"
	"github.com/muster-fleet/muster/internal/testkube"
)

const (
	tilesShown = `[...document.querySelectorAll(".tiles a")].map(t => t.id.slice(2) + " " + t.className.split(" ")[1]).join(", ")`
	liveness   = `document.getElementById("liveness").textContent`
)

func TestATimeUnderThePointerHasTheZoneOfItsVisitor(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("zoned")
	r.cluster(workspace, "web", "", "", nil)
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	_, err := chromedp.Call(b.Context, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
	r.check(err)
	b.Do(chromedp.Navigate(b.JS("location.origin")+"/?column=age&namespace=zoned"), chromedp.WaitVisible("time"))
	const title = `document.querySelector("time").title`
	exact := b.JS(title)
	for range 2 { // the second time changes nothing
		b.JS(`document.querySelector("time").dispatchEvent(new PointerEvent("pointerover", {bubbles: true}))`)
	}
	local, utc, _ := strings.Cut(b.JS(title), "\n")
	at, err := time.Parse("2006-01-02 15:04:05Z", exact)
	if tokyo := at.Add(9 * time.Hour).Format("3:04:05"); err != nil || utc != exact || !strings.Contains(local, tokyo) ||
		!strings.Contains(local, "GMT+9") {
		t.Errorf("it shows %q and %q of %q: %v", local, utc, exact, err)
	}
}

func TestThePageOfTheFleetFollowsIt(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("lively")
	web := r.cluster(workspace, "web", "", "", map[string]string{"env": "prod"})
	r.cluster(workspace, "lab", "AgentLost", "no heartbeat since noon", map[string]string{"env": "lab"})
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.Navigate(b.JS("location.origin") + "/?view=wall&namespace=lively"))
	b.Becomes("the tiles", tilesShown, "lively/lab s-lost, lively/web s-ready")
	b.Becomes("it is live", liveness, "live")
	if heading := b.JS(`document.querySelector("h1").textContent`); heading != "2 members" {
		t.Errorf("it says %s", heading)
	}
	if first := b.JS(`document.querySelector("#summary details").textContent`); !strings.Contains(first, "AgentLost") ||
		!strings.Contains(first, "no heartbeat since noon") || !strings.Contains(first, "kubectl") {
		t.Errorf("what first: %s", first)
	}
	b.JS(`window.same = true`)
	r.says(web, "NotReady", "ErrApplied(1)")
	b.Becomes("a change", tilesShown, "lively/lab s-lost, lively/web s-notready")
	r.cluster(workspace, "new", "", "", nil)
	b.Becomes("one more", tilesShown, "lively/lab s-lost, lively/new s-ready, lively/web s-notready")
	b.Becomes("the count", `document.querySelector("h1").textContent`, "3 members")
	r.check(r.Delete(t.Context(), web))
	b.Becomes("one less", tilesShown, "lively/lab s-lost, lively/new s-ready")
	if b.JS(`window.same`) != "true" {
		t.Error("the page was loaded again")
	}

	b.Do(chromedp.SendKeys(`#search [name=selector]`, "env=lab"))
	b.Becomes("what is searched for, as it is typed", tilesShown, "lively/lab s-lost")
	if url := b.JS("location.search"); !strings.Contains(url, "selector=env%3Dlab") {
		t.Errorf("the address is %s", url)
	}
	b.JS(`document.querySelector("#search [name=selector]").value = ""`)
	b.Do(chromedp.SendKeys(`#search [name=name]`, "ne"))
	b.Becomes("by a part of the name", tilesShown, "lively/new s-ready")
}

func TestThePageOfAMemberFollowsIt(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("single")
	web := r.cluster(workspace, "web", "AgentLost", "no heartbeat since noon", map[string]string{"env": "prod"})
	web.Status.History = []clusterv1beta1.HistoryEntry{{
		Time: metav1.Now(), Count: 2, Reason: clusterv1beta1.HistoryCordoned, Message: "a user keeps new deliveries from the member",
	}}
	r.check(r.Status().Update(t.Context(), web))
	for uid, said := range map[types.UID]string{web.UID: "it got this identity", "another": "what had the name before"} {
		r.check(r.Create(t.Context(), &musterv1alpha1.AuditEntry{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, GenerateName: "web-"},
			Spec: musterv1alpha1.AuditEntrySpec{Time: metav1.Now(), Reason: musterv1alpha1.AuditGranted, Message: said, Who: "ada",
				Object: musterv1alpha1.AuditObject{Kind: "Cluster", Namespace: workspace, Name: web.Name, UID: uid}}}))
	}
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.Navigate(b.JS("location.origin")+"/members/single/web"), chromedp.WaitVisible("h1"))
	b.Becomes("it is live", liveness, "live")
	for part, texts := range map[string][]string{
		"overview": {"Cluster single/web", "Lost", "env=prod", "no heartbeat since noon", "What to do:", "Timeline",
			"the last heartbeat of this member"},
		"timeline": {
			"2026-11-24 10:00:00Z", "it got this identity; user: ada", "Cordoned a user keeps new deliveries from the member (2 times since",
		},
		"deliveries": {"No deliveries yet.", "Namespace "},
		"access":     {"Revoke access"}, "yaml": {"kubectl -n single get clusters.fleet.cattle.io web -o yaml", "kind: Cluster"},
	} {
		b.Do(chromedp.Navigate(b.JS("location.origin")+"/members/single/web?tab="+part), chromedp.WaitVisible("h1"))
		text := b.JS(`document.getElementById("view").textContent`)
		for _, want := range texts {
			if !strings.Contains(text, want) {
				t.Errorf("the part %s does not say %q:\n%s", part, want, text)
			}
		}
		if strings.Contains(text, "what had the name before") {
			t.Error("the life of another is shown as its own")
		}
	}
	b.Do(chromedp.Navigate(b.JS("location.origin")+"/members/single/web"), chromedp.WaitVisible("h1"))
	r.says(web, "", "")
	b.Becomes("it is well again", `document.querySelector("h1 .state").textContent`, "Ready")
	b.Becomes("nothing is wrong", `document.querySelector("#why + p")?.textContent`, "No problems found.")
}

func TestThePageOfAMemberClusterTellsItsLife(t *testing.T) {
	r := newRig(t)
	member := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "view"}, Spec: clusterv1beta1.MemberClusterSpec{
			Identity: rbacv1.Subject{Kind: rbacv1.UserKind, Name: "edge"},
		},
	}
	r.check(r.Create(t.Context(), member))
	r.workspace(naming.SystemNamespace)
	for kind, said := range map[string]string{"MemberCluster": "edge was given its rights", "Cluster": "a Cluster of its name"} {
		r.check(r.Create(t.Context(), &musterv1alpha1.AuditEntry{ObjectMeta: metav1.ObjectMeta{
			Namespace: naming.SystemNamespace, GenerateName: "view-",
		},
			Spec: musterv1alpha1.AuditEntrySpec{
				Time: metav1.Now(), Reason: musterv1alpha1.AuditGranted, Message: said,
				Object: musterv1alpha1.AuditObject{Kind: kind, Name: member.Name},
			}}))
	}
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.Navigate(b.JS("location.origin")+"/?view=wall"), chromedp.WaitVisible("#view"))
	b.Becomes("its tile, although other things of the page are called so",
		`document.querySelector('.tiles a[href="/members/view"]').getAttribute("aria-label")`, "view New")
	r.check(r.Delete(t.Context(), member))
	b.Becomes("its tile goes", `document.querySelector('.tiles a[href="/members/view"]') === null && document.querySelector("h1") !== null`,
		"true")
	member.ResourceVersion, member.UID = "", ""
	r.check(r.Create(t.Context(), member))
	b.Do(chromedp.Navigate(b.JS("location.origin")+"/members/view?tab=timeline"), chromedp.WaitVisible(".life"))
	if life := b.JS(`document.querySelector(".life").textContent`); !strings.Contains(life, "edge was given its rights") ||
		strings.Contains(life, "a Cluster of its name") {
		t.Errorf("its life is %s", life)
	}
	r.check(r.Delete(t.Context(), member))
}

func TestApprovingInTheBrowser(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("approving")
	request := r.asking(workspace)
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.Navigate(b.JS("location.origin") + "/registration"))
	button := fmt.Sprintf(`form[action="/requests/%s/%s"] button[value=approve]`, workspace, request.Name)
	b.Do(chromedp.WaitVisible(button), chromedp.Click(button), chromedp.WaitVisible("h1"))
	testkube.Eventually(t, "it is approved", func() error {
		if err := r.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil ||
			request.Annotations[fleet.AnnotationApproved] != "true" {
			return fmt.Errorf("%v %v", request.Annotations, err)
		}
		return nil
	})
	b.Becomes("it is live", liveness, "live")
	another := r.asking(workspace)
	b.Do(chromedp.WaitVisible(fmt.Sprintf(`form[action="/requests/%s/%s"]`, workspace, another.Name)))
}

func TestWhatAMemberWritesIsShownAndNotRun(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("hostile")
	const attack = `"><img src=x onerror="document.title='run'"><script>document.title='run'</script>`
	bad := r.cluster(workspace, "bad", "AgentLost", attack, nil)
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	origin := b.JS("location.origin")
	for _, path := range []string{"/?namespace=hostile", "/?view=wall&namespace=hostile", "/members/hostile/bad"} {
		b.Do(chromedp.Navigate(origin+path), chromedp.WaitVisible("h1"))
		b.Becomes("it is live", liveness, "live")
		r.says(bad, "AgentLost", attack+attack) // what is put into the page later
		b.Becomes("it is shown as text", `document.getElementById("view").textContent.split("onerror").length > 2`, "true")
		if title, images := b.JS("document.title"),
			b.JS(`document.querySelectorAll("img").length`); strings.Contains(title, "run") || images != "0" {
			t.Errorf("%s: %s, %s images", path, title, images)
		}
		r.says(bad, "AgentLost", attack)
		b.Becomes("it is shown again", `document.getElementById("view").textContent.includes("onerror")`, "true")
	}
}

func TestMakingATokenInTheBrowser(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("issuing")
	r.cluster(workspace, "web", "", "", nil)
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.Navigate(b.JS("location.origin")+"/tokens/new"), chromedp.WaitVisible(".fields [name=name]"))
	b.JS(`document.querySelector(".fields [name=namespace]").value = "issuing"`)
	for name, text := range map[string]string{
		"name": "paste", "labels": "env=prod,stamped.muster/team=web", "cluster": "shop", "client-id": "shop-1", "description": "for the shop",
	} {
		b.Do(chromedp.SendKeys(".fields [name="+name+"]", text))
	}
	b.Do(chromedp.Click(".fields button"), chromedp.WaitVisible("h1 .state"))
	token := &fleet.ClusterRegistrationToken{}
	r.check(r.Get(t.Context(), client.ObjectKey{Namespace: workspace, Name: "paste"}, token))
	want := fleet.ClusterRegistrationTokenSpec{TTL: &metav1.Duration{Duration: 24 * time.Hour}, MaxRegistrations: ptr.To[int32](1),
		ClusterName: "shop", ClientID: "shop-1", Description: "for the shop",
		Labels: map[string]string{"env": "prod", "stamped.muster/team": "web"}}
	if diff := cmp.Diff(want, token.Spec); diff != "" {
		t.Error(diff)
	}
	b.Becomes("it is live", liveness, "live")
	r.check(r.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "paste"},
		Data: map[string][]byte{"values": []byte("token: bearer\napiServerURL: https://hub.example.com\n")}})) // as the hub does
	token.Status.SecretName = "paste"
	token.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionReady, Status: "True"}}
	r.check(r.Status().Update(t.Context(), token))
	b.Becomes("the line is there", `document.getElementById("line")?.textContent`,
		"muster join --token bearer --hub-url https://hub.example.com")
}

func TestAPageSaysSoWhenItIsNotLive(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("cut-off")
	web := r.cluster(workspace, "web", "", "", nil)
	link := testkube.NewLink(t, r.Config.Host)
	r.Config = rest.CopyConfig(r.Config)
	r.Config.Host = link.URL
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.Navigate(b.JS("location.origin") + "/?view=wall&namespace=cut-off"))
	b.Becomes("it is live", liveness, "live")
	link.Become(testkube.Quality{Cut: true})
	b.Becomes("what could not be read", `document.querySelector("#view .stale")?.textContent.startsWith("This page may be out of date: ")`,
		"true")
	b.Becomes("what was read is still there", tilesShown, "cut-off/web s-ready")
	r.says(web, "NotReady", "ErrApplied(1)")
	link.Become(testkube.Quality{})
	b.Becomes("what changed meanwhile", tilesShown, "cut-off/web s-notready")
	b.Becomes("it is live again", `document.querySelector("#view .stale") === null`, "true")
}

func TestAPageThatCannotBeLoadedKeepsWhatItShows(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("away")
	r.cluster(workspace, "web", "", "", nil)
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.Navigate(b.JS("location.origin") + "/?view=wall&namespace=away"))
	b.Becomes("it is live", liveness, "live")
	b.JS(
		`window.asked = window.fetch,
		window.fetch = async () => new Response("<div id=view>the server does not answer</div>", { status: 502 }),
		reload()`,
	)
	b.Becomes("why it may be outdated", `document.querySelector("#view .stale")?.textContent`,
		"This page may be out of date: the server does not answer")
	b.Becomes("what was there", tilesShown, "away/web s-ready")
	b.Becomes("it is not live", liveness, "not live")
	b.JS(`window.fetch = window.asked`)
	b.Becomes("it is loaded after all", `document.querySelector("#view .stale") === null`, "true")
	b.Becomes("it is live again", liveness, "live")
	b.JS(`window.before = document.getElementById("view"), source.onopen()`)
	b.Becomes("what was missed while a stream was broken is loaded", `document.getElementById("view") !== window.before`, "true")
}
