package dashboard

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testbrowser"
	"github.com/muster-fleet/muster/internal/testkube"
)

const (
	// references is the directory of the references.
	references = "testdata/looks"
	// mostLooks limits the bytes of all references.
	mostLooks = 1_500_000
	// maskedLooks replaces what differs in each run: times, generated names, versions, UIDs, and the
	// last changes. It hides the bars of the last hours; the page of components has fixed ones. The
	// page then follows the hub no more.
	maskedLooks = `(() => {
		if (typeof source !== "undefined") source?.close();
		if (typeof waiting !== "undefined") clearTimeout(waiting);
		document.activeElement.blur();
		document.documentElement.style.scrollbarWidth = "none";
		document.documentElement.style.setProperty("--sans", "Go");
		document.documentElement.style.setProperty("--mono", "Go Mono");
		document.querySelector("#liveness")?.replaceChildren("live");
		document.querySelector("#liveness")?.classList.remove("not");
		document.querySelector("footer").textContent = "muster";
		for (const time of document.querySelectorAll("time"))
			time.textContent = time.textContent.trim().length < 9 ? "17h" : "2026-01-02 03:04:05Z";
		if (!document.querySelector(".specimen"))
			for (const bar of document.querySelectorAll(".plot rect, .bar rect")) bar.style.visibility = "hidden";
		for (const li of document.querySelectorAll(".recent li")) {
			li.querySelector("a").textContent = "fleet/edge";
			Object.assign(li.querySelector(".state"), {textContent: "Ready", className: "state s-ready t-ok"});
		}
		const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let text = texts.nextNode(); text; text = texts.nextNode()) text.data = text.data.
			replace(/request-[a-z0-9]{5}/g, "request-00000").
			replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "00000000-0000-0000-0000-000000000000").
			replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d/g, "2026-01-02T03:04:05").
			replace(/(resourceVersion\S*)\s*"?\d+"?/g, "$1 0");
		for (const li of document.querySelectorAll(".bands li")) li.lastChild.data = " 17h";
		return true;
	})()`
)

// look is a page, and what a visitor has done on it.
type look struct{ url, done string }

// looksOf returns the looks by name: all pages of a fleet, empty pages, and dialogs.
func looksOf(r rig, b *testbrowser.Browser) map[string]look {
	r.t.Helper()
	looks := map[string]look{"sign-in": {url: r.shared() + "/sign-in"}}
	empty, err := NewOwned(r.t.Context(), Options{Config: r.Config, Namespace: r.workspace("empty")})
	r.check(err)
	for prefix, entrance := range map[string]string{"": r.owned(), "empty-": r.serve(empty) + empty.Entrance()} {
		b.Do(chromedp.Navigate(entrance), chromedp.WaitVisible("#view"))
		origin := b.JS("location.origin")
		if prefix != "" {
			for _, path := range []string{"deliveries", "registration"} {
				looks[prefix+path] = look{url: origin + "/" + path}
			}
			continue
		}
		for name, path := range looking(r) {
			looks[name] = look{url: origin + path}
		}
		looks["no-match"] = look{url: origin + "/?name=nothing-has-this-name"}
		looks["invalid"] = look{url: origin + "/?selector=%21%21"}
		looks["keys"] = look{origin + "/", `document.getElementById("keys").showModal()`}
		looks["columns"] = look{origin + "/?column=labels&column=age&column=provider", `document.querySelector(".columns").open = true`}
	}
	return looks
}

// fontsOnly is a configuration with the fonts of a directory only, and one way to draw them.
const fontsOnly = `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>
<dir>%s</dir><cachedir>%[1]s/cache</cachedir><match target="pattern">
<edit name="antialias" mode="assign"><bool>true</bool></edit>
<edit name="hinting" mode="assign"><bool>false</bool></edit>
<edit name="hintstyle" mode="assign"><const>hintnone</const></edit>
<edit name="rgba" mode="assign"><const>none</const></edit></match></fontconfig>`

// sameFonts makes a browser show the same fonts on all machines.
func sameFonts(t *testing.T) chromedp.ExecAllocatorOption {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"regular.ttf": goregular.TTF, "bold.ttf": gobold.TTF, "mono.ttf": gomono.TTF, "fonts.conf": fmt.Appendf(nil, fontsOnly, dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return chromedp.Env("FONTCONFIG_FILE=" + filepath.Join(dir, "fonts.conf"))
}

// shots returns pictures of a page in each width and theme, by the end of their name.
func shots(b *testbrowser.Browser, l look, spoil string) map[string][]byte {
	b.Helper()
	pictures := map[string][]byte{}
	b.Do(chromedp.EmulateViewport(1440, 1600), chromedp.Navigate(l.url), chromedp.WaitVisible("h1"))
	b.JS(maskedLooks)
	if l.done != "" {
		b.JS(l.done)
	}
	if spoil != "" {
		b.JS(spoil)
	}
	for _, width := range []int64{390, 1440, 2560} {
		b.Do(chromedp.EmulateViewport(width, 1600))
		for _, scheme := range []string{"light", "dark"} {
			if _, err := chromedp.Call(b.Context, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			}); err != nil {
				b.Fatal(err)
			}
			shot, err := chromedp.Run(b.Context, chromedp.CaptureScreenshot())
			if err != nil {
				b.Fatal(err)
			}
			pictures[fmt.Sprintf("-%d-%s.png", width, scheme)] = shot
		}
	}
	return pictures
}

// visualBugs are changes that the comparison must find on the page of components, in each picture.
var visualBugs = map[string]string{
	"buttons without their color": `document.querySelectorAll(".primary").forEach(e => e.classList.remove("primary"))`,
	"states without their color":  `document.querySelectorAll(".state").forEach(e => e.className = "state")`,
	"cards without their padding": `document.querySelectorAll(".card").forEach(e => e.style.padding = "6px")`,
}

// TestEachPageLooksAsBefore compares pictures of all pages and components with references, in three
// widths and both themes. References have a tenth of the size. After an intended change, look at
// the kept pictures, and renew the references of the changed pages:
//
//	MUSTER_LOOKS=renew go test ./internal/ui/dashboard -run TestEachPageLooksAsBefore
//
// It takes a minute, because it takes six pictures of each page.
func TestEachPageLooksAsBefore(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the references show the fonts as Chromium draws them on Linux")
	}
	r := rigOn(t, testkube.Start(t, "looks"))
	b := testbrowser.New(t, sameFonts(t))
	b.MayFail = true   // pages of errors
	t.Cleanup(func() { // another run of the test creates its own request
		r.check(r.DeleteAllOf(context.Background(), &fleet.ClusterRegistration{}, client.InNamespace("a-workspace-with-a-rather-long-name")))
	})
	keep, err := os.MkdirTemp("", "muster-looks-")
	r.check(err)
	looks, known := looksOf(r, b), map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(looks)) {
		for end, shot := range shots(b, looks[name], "") {
			known[name+end] = true
			reference := filepath.Join(references, name+end)
			difference, err := compareLooks(shot, reference, keep)
			switch {
			case os.Getenv("MUSTER_LOOKS") == "renew" && (difference != "" || err != nil):
				grid, err := gridOf(shot)
				r.check(err)
				r.check(writeGrid(reference, grid))
			case err != nil:
				t.Errorf("%s: %v", name+end, err)
			case difference != "":
				t.Errorf("%s %s", name+end, difference)
			}
		}
	}
	for bug, spoil := range visualBugs {
		for end, shot := range shots(b, looks["components"], spoil) {
			difference, err := compareLooks(shot, filepath.Join(references, "components"+end), "")
			r.check(err)
			if difference == "" {
				t.Errorf("components%s shows no difference with %s", end, bug)
			}
		}
	}
	checkReferences(t, known)
	if !t.Failed() {
		r.check(os.RemoveAll(keep))
	}
}

// checkReferences checks that each reference belongs to a page, and that all are small.
func checkReferences(t *testing.T, known map[string]bool) {
	t.Helper()
	files, err := os.ReadDir(references)
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
		if !known[file.Name()] {
			t.Errorf("%s/%s belongs to no page: delete it", references, file.Name())
		}
	}
	if size > mostLooks {
		t.Errorf("the references in %s have %d bytes, want at most %d", references, size, mostLooks)
	}
}
