package main

import (
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/muster-fleet/muster/internal/testbrowser"
)

// TestTheSearchFindsInAFolder searches in the site as a reader who has opened its folder.
func TestTheSearchFindsInAFolder(t *testing.T) {
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate("file://"+filepath.Join(made(t), "index.html")), chromedp.WaitVisible("#site-search"),
		chromedp.SendKeys("#site-search", "drift"))
	const found = `document.querySelector("#site-found a")?.getAttribute("href")`
	b.Becomes("what is searched for is found", found, "how-to/bundles.html#drift")
	b.Do(chromedp.SendKeys("#site-search", "x"))
	b.Becomes("what is nowhere is not", `document.querySelector("#site-found").textContent`, "Nothing found.")
	b.Do(chromedp.SendKeys("#site-search", kb.Escape), chromedp.SendKeys("#site-search", "drift"))
	b.Becomes("it is found again", found, "how-to/bundles.html#drift")
	b.Do(chromedp.SendKeys("#site-search", kb.Enter))
	b.Becomes("the page below is loaded, with its script",
		`document.querySelector("#drift") && document.readyState`, "complete")
	b.Do(chromedp.SendKeys("#site-search", "muster join"))
	b.Becomes("from a page below, too", `document.querySelector("#site-found a").href.endsWith("/reference/commands.html#muster-join")`,
		"true")
}
