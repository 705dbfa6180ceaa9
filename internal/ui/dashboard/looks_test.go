package dashboard

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/testbrowser"
)

// looking is a fleet with everything that a page may have, some of it long, and the pages by name.
func looking(r rig) map[string]string {
	workspace := r.workspace("a-workspace-with-a-rather-long-name")
	long := strings.Repeat("a-long-name-", 12) + "x"
	r.cluster(workspace, long, "NotReady", strings.Repeat("ErrApplied(1) ", 40), map[string]string{"env": "prod"})
	for i := range 40 {
		reason := []string{"", "", "", "AgentLost", "NotReady", "WaitCheckIn"}[i%6]
		edge := r.cluster(workspace, fmt.Sprintf("edge-%02d", i), reason, "because", nil)
		for hour, change := range plottedReasons {
			edge.Status.History = append(edge.Status.History, clusterv1beta1.HistoryEntry{
				Time: metav1.NewTime(time.Now().Add(-time.Duration(hour+i) * time.Hour / 2)), Reason: change, Message: "because",
			})
		}
		edge.Status.HeartbeatDelay = delaysSince(0, int32(i%13), 0, -1, -1, int32(i), 3, int32(i%7))
		r.check(r.Status().Update(r.t.Context(), edge))
	}
	create := func(o client.Object) { r.check(client.IgnoreAlreadyExists(r.Create(r.t.Context(), o))) }
	create(&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"},
		Spec: clusterv1beta1.MemberClusterSpec{
			Identity: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: "east"},
		}})
	create(&fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "token"}})
	create(&fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "shop"}, Spec: fleet.BundleSpec{
		Targets: []fleet.BundleTarget{
			{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}, {ClusterName: long},
		}}})
	shop := &fleet.Bundle{}
	r.check(r.Get(r.t.Context(), client.ObjectKey{Namespace: workspace, Name: "shop"}, shop))
	shop.Status = fleet.BundleStatus{Conditions: []fleet.Condition{{
		Type: fleet.ConditionReady, Status: "False", Reason: "NotReady", Message: "ErrApplied(2)",
	}},
		Display: fleet.BundleDisplay{ReadyClusters: "3/5", State: "ErrApplied"}, PartitionStatus: []fleet.PartitionStatus{
			{Name: "canary", Count: 2, Unavailable: 2}, {Name: "others", Count: 3},
		},
		Summary: fleet.BundleSummary{
			NonReadyResources: []fleet.NonReadyResource{{Name: workspace + "/edge-00", State: "ErrApplied", Message: strings.Repeat("no ", 50)}, {
				Name: workspace + "/edge-01", State: "Modified", ModifiedStatus: []fleet.ModifiedStatus{{
					Kind: "Deployment", Namespace: "shop", Name: "web", Patch: `{"spec":{"replicas":3,"paused":null}}`,
				}},
			}},
		}}
	r.check(r.Status().Update(r.t.Context(), shop))
	create(&fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "shop"},
		Spec: fleet.GitRepoSpec{Repo: "https://git.example.com/" + strings.Repeat("a-long-name-", 20)}})
	request := r.asking(workspace)
	placed := &placement.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: placement.PlacementSpec{
			ResourceSelectors: []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: workspace}},
		},
	}
	create(placed)
	r.check(r.Get(r.t.Context(), client.ObjectKeyFromObject(placed), placed))
	placed.Status = placement.PlacementStatus{ObservedResourceIndex: "4", Members: "0/3",
		PlacementStatuses: []placement.PerClusterStatus{dated(at(workspace+"/"+long, placement.ConditionRolloutStarted,
			"waits for its turn", metav1.ConditionFalse)),
			dated(at(workspace+"/edge-00", placement.ConditionAvailable, strings.Repeat("no ", 50), metav1.ConditionFalse)),
			dated(at("east", "", "", ""))}}
	r.check(r.Status().Update(r.t.Context(), placed))
	return map[string]string{"fleet": "/", "wall": "/?view=wall&group=state", "components": "/components",
		"member":        "/members/" + workspace + "/" + long,
		"membercluster": "/members/east", "yaml": "/members/east?tab=yaml", "timeline": "/members/east?tab=timeline",
		"bands":             "/members/" + workspace + "/edge-03?tab=timeline",
		"member-deliveries": "/members/east?tab=deliveries", "access": "/members/" + workspace + "/" + long + "?tab=access",
		"request": "/requests/" + workspace + "/" + request.Name, "token-form": "/tokens/new",
		"bulk":       "/bulk?action=cordon&member=east&member=" + workspace + "/edge-00&member=" + workspace + "/none",
		"deliveries": "/deliveries", "delivery": "/deliveries/bundles/" + workspace + "/shop",
		"gitrepo":   "/deliveries/gitrepos/" + workspace + "/shop",
		"placement": "/deliveries/clusterresourceplacements/shop", "token": "/tokens/" + workspace + "/token", "registration": "/registration",
		"find": "/find?q=edge", "problem": "/members/nobody"}
}

// dated has the conditions of a member what an API server asks for.
func dated(s placement.PerClusterStatus) placement.PerClusterStatus {
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime, s.Conditions[i].Reason = metav1.Now(), "Because"
	}
	return s
}

// looksAt opens a page in a window of a width, in light or dark colours.
func looksAt(b *testbrowser.Browser, address, scheme string, width int64) {
	b.Helper()
	_, err := chromedp.Call(b.Context, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Do(chromedp.EmulateViewport(width, 900), chromedp.Navigate(address), chromedp.WaitVisible("h1"))
}

const (
	// tooWide are elements that go beyond the window.
	tooWide = `[...document.querySelectorAll("main *")].
		filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".wide")).
		map(e => e.tagName + "." + e.className).slice(0, 5)`
	// scrolling are parts other than code that scroll sideways. On a telephone the rows of tables are
	// cards, and nothing is beyond the edge.
	scrolling = `[...document.querySelectorAll("main *")].
		filter(e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX) && !e.closest("pre") && e.scrollWidth > e.clientWidth + 1).
		map(e => e.tagName + "." + e.className + " " + e.scrollWidth + " > " + e.clientWidth).slice(0, 5).join("; ")`
	// misplaced are labels of a plot apart from their hours: the left edge, the middle and the right
	// edge of the bars.
	misplaced = `[...document.querySelectorAll(".plot svg")].flatMap(svg => {
		const bars = svg.getBoundingClientRect(), [first, middle, last] = [...svg.parentElement.querySelectorAll(".times span")].
			map(label => label.getBoundingClientRect());
		return [first.left - bars.left, (middle.left + middle.right - bars.left - bars.right) / 2, last.right - bars.right];
	}).filter(distance => Math.abs(distance) > 1).join(", ")`
	// unfolded shows everything on a page.
	unfolded = `document.querySelectorAll("details").forEach(d => d.open = true),
		document.querySelectorAll(".group").forEach(g => g.style.contentVisibility = "visible")`
	// boxes are the lines of text of a page, and where they are.
	boxes = `(() => {
		const lines = [], texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
		for (let text = texts.nextNode(); text; text = texts.nextNode()) {
			if (!text.data.trim() || text.parentElement.closest(".skip, option, script, #liveness")) continue;
			range.selectNodeContents(text);
			for (const box of range.getClientRects()) lines.push({text: text.data.trim().slice(0, 40), box});
		}
		return lines;
	})()`
	// broken is text that covers other text, and text that is cut off.
	broken = `(() => {
		const lines = ` + boxes + `, found = [];
		lines.forEach((a, i) => lines.slice(i + 1).forEach(b => {
			const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
			const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
			if (across > 2 && down > 6) found.push("'" + a.text + "' covers '" + b.text + "'");
		}));
		for (const e of document.querySelectorAll("body *"))
			if (!["visible", "auto", "scroll"].includes(getComputedStyle(e).overflowX) && e.matches(":not(input, select)") &&
				e.scrollWidth > e.clientWidth + 1) found.push("'" + e.textContent.trim().slice(0, 40) + "' is cut off");
		return lines.length < 5 ? "there is nothing on it" : found.slice(0, 5).join("; ");
	})()`
	// places is where the lines of text are, whatever their colours.
	places = `JSON.stringify(` + boxes + `.map(l => [l.box.x, l.box.y, l.box.width].map(Math.round)))`
)

// TestNoPageBreaks looks at all pages on a telephone and on a screen, in both colours, and keeps
// pictures of them if MUSTER_SCREENSHOTS names a directory. TestEachPageLooksAsBefore compares
// pictures with references; this test uses the fonts of the machine. It checks that no page is
// wider than its window, and that no text covers another or is cut off. It checks the place of text
// in both colours.
func TestNoPageBreaks(t *testing.T) {
	r := newRig(t)
	pages := looking(r)
	b := testbrowser.New(t)
	b.MayFail = true // the page of a member that there is not
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	origin, pictures := b.JS("location.origin"), os.Getenv("MUSTER_SCREENSHOTS")
	for name, path := range pages {
		for _, width := range []int64{360, 390, 1280, 2560} {
			in := map[string]string{}
			schemes := []string{"light", "dark"}
			if width > 1280 || width == 390 {
				schemes = schemes[:1] // colors change nothing there that they do not change at other widths
			}
			for _, scheme := range schemes {
				looksAt(b, origin+path, scheme, width)
				if wide := b.JS("document.documentElement.scrollWidth"); wide != fmt.Sprint(width) {
					t.Errorf("%s in a window of %d is %s wide; too wide are %s", path, width, wide, b.JS(tooWide))
				}
				if pictures != "" {
					image, err := chromedp.Run(b.Context, chromedp.FullScreenshot(100))
					r.check(err)
					r.check(os.WriteFile(filepath.Join(pictures, fmt.Sprintf("%s-%s-%d.png", name, scheme, width)), image, 0o644))
				}
				b.JS(unfolded)
				if beyond := b.JS(scrolling); beyond != "" && width < 400 {
					t.Errorf("%s in a window of %d scrolls sideways: %s", path, width, beyond)
				}
				if bad := b.JS(broken); bad != "" {
					t.Errorf("%s in a window of %d: %s", path, width, bad)
				}
				if away := b.JS(misplaced); away != "" {
					t.Errorf("%s in a window of %d: labels of the plot are %s pixels from their hours", path, width, away)
				}
				in[scheme] = b.JS(places)
			}
			// An age may have got another digit in between; what a colour does it does each time.
			for again := 0; again < 3 && len(in) > 1 && in["light"] != in["dark"]; again++ {
				for scheme := range in {
					looksAt(b, origin+path, scheme, width)
					b.JS(unfolded)
					in[scheme] = b.JS(places)
				}
			}
			if len(in) > 1 && in["light"] != in["dark"] {
				t.Errorf("%s in a window of %d is another one in dark colours:\n%s\n%s", path, width, in["light"], in["dark"])
			}
		}
	}
	looksAt(b, origin+pages["fleet"], "light", 390)
	b.JS(`document.querySelector(".wide").style.overflowX = "auto", document.querySelector(".wide table").style.minWidth = "900px"`)
	if b.JS(scrolling) == "" {
		t.Error("it does not find a table beyond the edge")
	}
	for spoiled, want := range map[string]string{
		`document.querySelectorAll("#view *").forEach(e => e.style.lineHeight = "3px")`:                               " covers ",
		`Object.assign(document.querySelector("h1").style, {overflow: "hidden", width: "2ch", whiteSpace: "nowrap"})`: " is cut off",
	} {
		looksAt(b, origin+pages["member"], "light", 1280)
		b.JS(spoiled)
		if bad := b.JS(broken); !strings.Contains(bad, want) {
			t.Errorf("after %s it finds %q", spoiled, bad)
		}
	}
}

// TestThePagesAreAccessible has axe look for what WCAG 2.2 asks for at the levels A and AA, as
// far as a program can.
func TestThePagesAreAccessible(t *testing.T) {
	r := newRig(t)
	axe := axeOf(t)
	pages := looking(r)
	b := testbrowser.New(t)
	b.MayFail = true // the page of a member that there is not
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	origin := b.JS("location.origin")
	for name, path := range pages {
		for _, scheme := range []string{"light", "dark"} {
			looksAt(b, origin+path, scheme, 1280)
			b.JS(unfolded)
			if found := inaccessible(b, axe); found != "" {
				t.Errorf("%s, %s: %s", name, scheme, found)
			}
		}
	}
}

// inaccessible returns what axe finds on the page.
func inaccessible(b *testbrowser.Browser, axe string) string {
	b.Helper()
	b.Do(chromedp.Evaluate[chromedp.Void](axe))
	ctx, end := context.WithTimeout(b.Context, time.Minute)
	defer end()
	found, err := chromedp.Run(ctx,
		chromedp.Evaluate[string](`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then(r =>
		r.passes.length < 5 ? "it has looked at nothing" : r.violations.map(v => v.id + ": " + v.help + ": " +
		v.nodes.slice(0, 3).map(n => n.html + " " + n.failureSummary).join("; ")).join("\n"))`,
			chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// The package of axe, and its digest as the registry has it.
const (
	axePackage = "axe-core@4.14.1"
	axeDigest  = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axeOf is the script of axe, which npm gets once.
func axeOf(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "muster-tests")
	path := filepath.Join(dir, strings.ReplaceAll(axePackage, "@", "-")+".tgz")
	if _, err := os.Stat(path); err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		if out, err := exec.CommandContext(ctx, "npm", "pack", axePackage, "--pack-destination", dir).CombinedOutput(); err != nil {
			t.Skipf("npm cannot get %s, which looks whether the pages are accessible: %v %s", axePackage, err, out)
		}
	}
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha512.Sum512(packed); base64.StdEncoding.EncodeToString(sum[:]) != axeDigest {
		t.Fatalf("%s is not %s: delete it", path, axePackage)
	}
	script, err := fileOf(string(packed), "package/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	return script
}

// fileOf is a file of a compressed archive.
func fileOf(packed, name string) (string, error) {
	plain, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return "", err
	}
	archive := tar.NewReader(plain)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return "", fmt.Errorf("there is no %s in it", name)
		}
		if err != nil {
			return "", err
		}
		if header.Name == name {
			text, err := io.ReadAll(archive)
			return string(text), err
		}
	}
}
