package dashboard

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testkube"
)

// browser is a Chromium without a window, in which nothing may go wrong that it tells of.
type browser struct {
	rig
	ctx context.Context
	// mayFail says that the server may answer that something does not exist.
	mayFail bool
}

func (r rig) browser() *browser {
	r.t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		r.t.Skip("there is no Chromium on this machine: install the package chromium to have the pages looked at in a browser")
	}
	ctx, end := chromedp.NewExecAllocator(r.t.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WindowSize(1280, 900))...)
	r.t.Cleanup(end)
	ctx, end = chromedp.NewContext(ctx)
	r.t.Cleanup(end)
	b := &browser{rig: r, ctx: ctx}
	var mu sync.Mutex
	var said []string
	r.check(chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			said = append(said, fmt.Sprintf("%+v", *event.ExceptionDetails))
		case *log.EventEntryAdded:
			if event.Entry.Level == log.EntryLevelError && (!b.mayFail || event.Entry.Source != log.EntrySourceNetwork) {
				said = append(said, event.Entry.Text+" "+event.Entry.URL)
			}
		}
	}))
	r.t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		if len(said) > 0 {
			r.t.Errorf("the browser says:\n%s", strings.Join(said, "\n"))
		}
	})
	return b
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, end := context.WithTimeout(b.ctx, 30*time.Second)
	defer end()
	if err := chromedp.Do(ctx, steps...); err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText")) // as far as there is one
		b.t.Fatalf("%v; the page is:\n%s", err, text)
	}
}

// js is the value of an expression in the page.
func (b *browser) js(expression string) string {
	b.t.Helper()
	value, err := b.eval(expression)
	b.check(err)
	return value
}

func (b *browser) eval(expression string) (string, error) {
	ctx, end := context.WithTimeout(b.ctx, 30*time.Second)
	defer end()
	return chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
}

// becomes waits until an expression has a value.
func (b *browser) becomes(what, expression, want string) {
	b.t.Helper()
	testkube.Eventually(b.t, what, func() error {
		got, err := b.eval(expression) // which throws while another page is being loaded
		if err == nil && got != want {
			err = fmt.Errorf("%s is %q, not %q", expression, got, want)
		}
		return err
	})
}

const (
	tilesShown = `[...document.querySelectorAll(".tiles a")].map(t => t.id + " " + t.className.replace(" new", "")).join(", ")`
	liveness   = `document.getElementById("liveness").textContent`
)

func TestThePageOfTheFleetFollowsIt(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("lively")
	web := r.cluster(workspace, "web", "", "", map[string]string{"env": "prod"})
	r.cluster(workspace, "lab", "AgentLost", "no heartbeat since noon", map[string]string{"env": "lab"})
	b := r.browser()
	b.do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.do(chromedp.Navigate(b.js("location.origin") + "/?namespace=lively"))
	b.becomes("the tiles", tilesShown, "lively/lab s-lost, lively/web s-ready")
	b.becomes("it is live", liveness, "live")
	if heading := b.js(`document.querySelector("h1").textContent`); heading != "2 members" {
		t.Errorf("it says %s", heading)
	}
	if first := b.js(`document.querySelector("#summary details").textContent`); !strings.Contains(first, "AgentLost") || !strings.Contains(first, "no heartbeat since noon") || !strings.Contains(first, "kubectl") {
		t.Errorf("what first: %s", first)
	}
	b.js(`window.same = true`)
	r.says(web, "NotReady", "ErrApplied(1)")
	b.becomes("a change", tilesShown, "lively/lab s-lost, lively/web s-notready")
	r.cluster(workspace, "new", "", "", nil)
	b.becomes("one more", tilesShown, "lively/lab s-lost, lively/new s-ready, lively/web s-notready")
	b.becomes("the count", `document.querySelector("h1").textContent`, "3 members")
	r.check(r.Delete(t.Context(), web))
	b.becomes("one less", tilesShown, "lively/lab s-lost, lively/new s-ready")
	if b.js(`window.same`) != "true" {
		t.Error("the page was loaded again")
	}

	b.do(chromedp.SendKeys(`#search [name=selector]`, "env=lab"))
	b.becomes("what is searched for, as it is typed", tilesShown, "lively/lab s-lost")
	if url := b.js("location.search"); !strings.Contains(url, "selector=env%3Dlab") {
		t.Errorf("the address is %s", url)
	}
	b.js(`document.querySelector("#search [name=selector]").value = ""`)
	b.do(chromedp.SendKeys(`#search [name=name]`, "ne"))
	b.becomes("by a part of the name", tilesShown, "lively/new s-ready")
}

func TestThePageOfAMemberFollowsIt(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("single")
	web := r.cluster(workspace, "web", "AgentLost", "no heartbeat since noon", map[string]string{"env": "prod"})
	b := r.browser()
	b.do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.do(chromedp.Navigate(b.js("location.origin")+"/members/single/web"), chromedp.WaitVisible("h1"))
	b.becomes("it is live", liveness, "live")
	text := b.js(`document.getElementById("view").textContent`)
	for _, want := range []string{"Cluster single/web", "Lost", "env=prod", "no heartbeat since noon", "What to do:", "Its life", "2026-11-24 10:00:00Z", "Namespace "} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	r.says(web, "", "")
	b.becomes("it is well again", `document.querySelector("h1 .state").textContent`, "Ready")
	b.becomes("nothing is wrong", `document.querySelector("#why + p")?.textContent`, "Nothing is wrong with it.")
}

func TestApprovingInTheBrowser(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("approving")
	request := r.asking(workspace)
	b := r.browser()
	b.do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.do(chromedp.Navigate(b.js("location.origin") + "/registration"))
	button := fmt.Sprintf(`form[action="/requests/%s/%s"] button[value=approve]`, workspace, request.Name)
	b.do(chromedp.WaitVisible(button), chromedp.Click(button), chromedp.WaitVisible("h1"))
	testkube.Eventually(t, "it is approved", func() error {
		if err := r.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil || request.Annotations[fleet.AnnotationApproved] != "true" {
			return fmt.Errorf("%v %v", request.Annotations, err)
		}
		return nil
	})
	b.becomes("it is live", liveness, "live")
	another := r.asking(workspace)
	b.do(chromedp.WaitVisible(fmt.Sprintf(`form[action="/requests/%s/%s"]`, workspace, another.Name)))
}

func TestWhatAMemberWritesIsShownAndNotRun(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("hostile")
	const attack = `"><img src=x onerror="document.title='run'"><script>document.title='run'</script>`
	bad := r.cluster(workspace, "bad", "AgentLost", attack, nil)
	b := r.browser()
	b.do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	origin := b.js("location.origin")
	for _, path := range []string{"/?namespace=hostile", "/members/hostile/bad"} {
		b.do(chromedp.Navigate(origin+path), chromedp.WaitVisible("h1"))
		b.becomes("it is live", liveness, "live")
		r.says(bad, "AgentLost", attack+attack) // what is put into the page later
		b.becomes("it is shown as text", `document.getElementById("view").textContent.split("onerror").length > 2`, "true")
		if title, images := b.js("document.title"), b.js(`document.querySelectorAll("img").length`); strings.Contains(title, "run") || images != "0" {
			t.Errorf("%s: %s, %s images", path, title, images)
		}
		r.says(bad, "AgentLost", attack)
		b.becomes("it is shown again", `document.getElementById("view").textContent.includes("onerror")`, "true")
	}
}

func TestMakingATokenInTheBrowser(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("issuing")
	r.cluster(workspace, "web", "", "", nil)
	b := r.browser()
	b.do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.do(chromedp.Navigate(b.js("location.origin")+"/registration"), chromedp.Click("details.make summary"), chromedp.WaitVisible(".make [name=name]"))
	b.js(`document.querySelector(".make [name=namespace]").value = "issuing"`)
	for name, text := range map[string]string{"name": "paste", "labels": "env=prod,stamped.muster/team=web", "cluster": "shop", "client-id": "shop-1", "description": "for the shop"} {
		b.do(chromedp.SendKeys(".make [name="+name+"]", text))
	}
	b.do(chromedp.Click(".make button"), chromedp.WaitVisible("h1 .state"))
	token := &fleet.ClusterRegistrationToken{}
	r.check(r.Get(t.Context(), client.ObjectKey{Namespace: workspace, Name: "paste"}, token))
	want := fleet.ClusterRegistrationTokenSpec{TTL: &metav1.Duration{Duration: 24 * time.Hour}, MaxRegistrations: ptr.To[int32](1), ClusterName: "shop", ClientID: "shop-1", Description: "for the shop",
		Labels: map[string]string{"env": "prod", "stamped.muster/team": "web"}}
	if diff := cmp.Diff(want, token.Spec); diff != "" {
		t.Error(diff)
	}
	b.becomes("it is live", liveness, "live")
	r.check(r.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "paste"},
		Data: map[string][]byte{"values": []byte("token: bearer\napiServerURL: https://hub.example.com\n")}})) // as the hub does
	token.Status.SecretName = "paste"
	token.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionReady, Status: "True"}}
	r.check(r.Status().Update(t.Context(), token))
	b.becomes("the line is there", `document.getElementById("line")?.textContent`, "muster join --token bearer --hub-url https://hub.example.com")
}

func TestAPageSaysSoWhenItIsNotLive(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("cut-off")
	web := r.cluster(workspace, "web", "", "", nil)
	link := testkube.NewLink(t, r.Config.Host)
	r.Config = rest.CopyConfig(r.Config)
	r.Config.Host = link.URL
	b := r.browser()
	b.do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.do(chromedp.Navigate(b.js("location.origin") + "/?namespace=cut-off"))
	b.becomes("it is live", liveness, "live")
	link.Become(testkube.Quality{Cut: true})
	b.becomes("what could not be read", `document.querySelector("#view .stale")?.textContent.startsWith("This may not be what is so now: ")`, "true")
	b.becomes("what was read is still there", tilesShown, "cut-off/web s-ready")
	r.says(web, "NotReady", "ErrApplied(1)")
	link.Become(testkube.Quality{})
	b.becomes("what changed meanwhile", tilesShown, "cut-off/web s-notready")
	b.becomes("it is live again", `document.querySelector("#view .stale") === null`, "true")
	b.js(`warn("as the stream did that broke"), listen()`)
	b.becomes("what another stream warned of is asked again", `document.querySelector("#view .stale") === null`, "true")
}
