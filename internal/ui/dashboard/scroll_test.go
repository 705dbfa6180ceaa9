package dashboard

import (
	"fmt"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testbrowser"
)

// thousands is a dashboard with 10,000 members, without an API server. It returns its address, and
// a function that changes a member.
func thousands(t *testing.T) (s *Server, address string, put func(i int, state corev1.ConditionStatus, version string)) {
	t.Helper()
	s, all := remembered()
	s.authenticator, s.ctx = newKeyAuthenticator(all), t.Context()
	put = func(i int, state corev1.ConditionStatus, version string) {
		s.cache.put(clusters, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("workspace-%02d", i/500), Name: fmt.Sprintf("edge-%05d", i), ResourceVersion: version,
		}, Status: fleet.ClusterStatus{
			Conditions: []fleet.Condition{{Type: fleet.ConditionReady, Status: state, Reason: "AgentLost", Message: "no heartbeat"}},
		}})
	}
	for i := range 10_000 {
		put(i, corev1.ConditionTrue, "1")
	}
	server := httptest.NewServer(s.Handler())
	t.Cleanup(server.Close)
	return s, server.URL, put
}

const (
	// shownRows is the number of rows in the document.
	shownRows = `document.querySelectorAll("table.members input[name=member]").length`
	// topRow is the first visible row, and shownRange its number as the page says it.
	topRow = `(() => { const top = visible().top + 5;
		const row = [...document.querySelectorAll("table.members tbody tr")].find(r => r.getBoundingClientRect().bottom > top);
		return row?.querySelector("th a")?.textContent;
	})()`
	shownRange = `document.querySelector("#bulk nav span").textContent`
	// selected is the text beside the box for all.
	selected = `document.querySelector("[data-chosen]").textContent`
	// scrollTo scrolls so that a row is at the top.
	scrollTo = `(() => {
		long.region.scrollTop = long.table.tBodies[0].offsetTop - long.table.tHead.offsetHeight + %d * long.row + 2;
	})()`
	// pickedNow reports whether the selected rows of the document are the whole selection.
	pickedNow = `[...document.querySelectorAll("#bulk input[name=member]:checked")].length + " selected" === ` + selected
)

// rowInPage is the expression of the row of a member.
func rowInPage(name string) string {
	return `document.querySelector("[value='` + name + `']").closest("tr")`
}

// nameOfRow is the name of a member in the table, by its place.
func nameOfRow(s *Server, i int) string {
	all, _ := s.cache.of(clusters)
	return all[i].name
}

// TestTenThousandRowsScroll scrolls through the table in a real browser. The bounds of the times
// are wide, for slow machines; the log has the times.
func TestTenThousandRowsScroll(t *testing.T) {
	s, address, put := thousands(t)
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(address+s.Entrance()), chromedp.WaitVisible("#bulk"))
	b.Becomes("it is live", liveness, "live")
	paint := b.JS(`Math.round(performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0)`)
	t.Logf("first paint after %s ms", paint)
	if ms, err := strconv.Atoi(paint); err != nil || ms > 5000 {
		t.Errorf("the first paint takes %s ms", paint)
	}
	b.Becomes("the first rows", topRow, nameOfRow(s, 0))
	for _, row := range []int{150, 7000, 9950, 4321, 4330} {
		took, err := chromedp.Run(b.Context, chromedp.Evaluate[float64](fmt.Sprintf(`(async () => {
			const began = performance.now();
			`+scrollTo+`;
			while (`+topRow+` !== %q && performance.now() < began + 20000) await new Promise(requestAnimationFrame);
			return performance.now() - began;
		})()`, row, nameOfRow(s, row)), chromedp.EvalAwaitPromise))
		t.Logf("row %d is visible after %.0f ms", row, took)
		if err != nil || took > 5000 {
			t.Errorf("row %d is visible after %.0f ms: %v", row, took, err)
		}
	}
	b.Becomes("the page is in the address", "location.search", "?page=44")
	rows, err := strconv.Atoi(b.JS(shownRows))
	if err != nil || rows > 500 {
		t.Errorf("%d rows are in the document", rows)
	}
	b.Becomes("the numbers of the rows", shownRange+".split(' ')[0]", "4331")
	b.Becomes("screen readers get the number of a row", rowInPage(nameOfRow(s, 4330))+".ariaRowIndex", "4332")

	b.JS("window.view = document.getElementById('view')")
	put(4330, corev1.ConditionFalse, "2")
	b.Becomes("the change loads the page again", "document.getElementById('view') !== window.view", "true")
	b.Becomes("the row is at the same place", topRow, nameOfRow(s, 4330))
	b.Becomes("and has the new state", rowInPage(nameOfRow(s, 4330))+`.querySelector(".state").textContent`, "Lost")
	b.Do(chromedp.Reload(), chromedp.WaitVisible("#bulk"))
	b.Becomes("a reload shows the page of the address", topRow, nameOfRow(s, 4300))
}

// jumps goes to far rows, each after a pause, and waits for the row at the top. No timer for the
// end of the scrolling ever fires. It returns the times to the rows in milliseconds.
const jumps = `(async () => {
	const took = [], real = setTimeout, pause = (ms) => new Promise(resolve => real(resolve, ms));
	window.setTimeout = (action, ms) => action === update ? 0 : real(action, ms);
	for (let i = 0; i < 12; i++) {
		await pause(200);
		const row = (i * 7919 + 3333) % 9900, part = long.parts[Math.floor(row / 100)], began = performance.now();
		long.region.scrollTop = long.table.tBodies[0].offsetTop - long.table.tHead.offsetHeight + row * long.row + 2;
		while (!part.has) {
			if (performance.now() > began + 20000) return "never to row " + row;
			await new Promise(requestAnimationFrame);
		}
		took.push(performance.now() - began);
	}
	took.sort((a, b) => a - b);
	return [took[6], took[10]].map(Math.round).join(" ");
})()`

// TestAFarJumpDoesNotWaitForTheEndOfTheScrolling jumps through 10,000 rows in several orders. The
// log has the times, which depend on the machine.
func TestAFarJumpDoesNotWaitForTheEndOfTheScrolling(t *testing.T) {
	s, address, _ := thousands(t)
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(address + s.Entrance()))
	for _, path := range []string{"/", "/?sort=-version", "/?sort=state"} {
		b.Do(chromedp.Navigate(address+path), chromedp.WaitVisible("#bulk"))
		b.Becomes("it is live", liveness, "live")
		said, err := chromedp.Run(b.Context, chromedp.Evaluate[string](jumps, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		var median, most int
		if _, err := fmt.Sscan(said, &median, &most); err != nil {
			t.Fatalf("%s: the rows come %s: %v", path, said, err)
		}
		t.Logf("%s: the rows are visible after %d ms at the median of 12 jumps, 11 of them within %d ms", path, median, most)
	}
}

// TestSelectionAndFocusSurviveScrolling goes with keys over the end of a page, and selects members
// far from each other.
func TestSelectionAndFocusSurviveScrolling(t *testing.T) {
	s, address, put := thousands(t)
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(address+s.Entrance()), chromedp.WaitVisible("#bulk"))
	b.Do(chromedp.KeyEvent("jx"))
	b.Becomes("the first one is selected", selected, "1 selected")
	b.JS(fmt.Sprintf(scrollTo, 8990))
	b.Becomes("a far row is visible", topRow, nameOfRow(s, 8990))
	b.Becomes("the next page is loaded", `!!document.querySelector("[value='`+nameOfRow(s, 9002)+`']")`, "true")
	b.JS(`document.querySelector("[value='` + nameOfRow(s, 8998) + `']").focus()`)
	b.Do(chromedp.KeyEvent("xjjjjx"))
	const focus = `document.activeElement.closest("tr")?.querySelector("input").value`
	b.Becomes("the focus goes over the end of a page", focus, nameOfRow(s, 9002))
	b.Becomes("two more are selected", selected, "3 selected")

	b.JS("window.view = document.getElementById('view')")
	put(9002, corev1.ConditionFalse, "2")
	b.Becomes("the change loads the page again", "document.getElementById('view') !== window.view", "true")
	b.Becomes("the focus is on the same member", focus, nameOfRow(s, 9002))
	b.Becomes("the selection is the same", selected, "3 selected")
	b.JS(fmt.Sprintf(scrollTo, 0))
	b.Becomes("the first row is visible", topRow, nameOfRow(s, 0))
	b.Becomes("it is still selected", `document.querySelector("[value='`+nameOfRow(s, 0)+`']").checked`, "true")
	b.Becomes("the row with the focus stays", focus, nameOfRow(s, 9002))
	b.Becomes("the form has all of them", `new FormData(document.getElementById("bulk")).getAll("member").sort().join()`,
		nameOfRow(s, 0)+","+nameOfRow(s, 8998)+","+nameOfRow(s, 9002))

	b.Do(chromedp.Click("[data-all]"))
	b.Becomes("the box for all ends the selection", selected, "Select all in view")
	const held = `document.querySelector("#bulk button[name=action]:not([aria-describedby])").disabled`
	b.JS(`[...Array(most + 1).keys()].forEach((i) => chosen.add("member-" + i)), count()`)
	b.Becomes("too many members cannot change at once", held, "true")
	b.JS(`chosen.clear(), count()`)
	b.Becomes("fewer can", held, "false")
	b.Do(chromedp.Click("[data-all]"))
	b.Becomes("it selects the visible rows", fmt.Sprintf(`%s === inView().length + " selected" && inView().length > 5`, selected), "true")
	b.Do(chromedp.SendKeys("#search [name=name]", "edge-0000"))
	b.Becomes("another search", "document.querySelector('h1').textContent", "10 members")
	b.Becomes("selects only what it shows", pickedNow, "true")
}

// TestALongTableScrollsOnATelephone scrolls the page, whose rows are cards of different heights.
func TestALongTableScrollsOnATelephone(t *testing.T) {
	s, address, _ := thousands(t)
	b := testbrowser.New(t)
	b.Do(chromedp.EmulateViewport(390, 900), chromedp.Navigate(address+s.Entrance()), chromedp.WaitVisible("#bulk"))
	b.JS(`show(60)`)
	b.Becomes("a far row is in the document", `!!document.querySelector("[value='`+nameOfRow(s, 5900)+`']")`, "true")
	b.Becomes("the page is in the address", "Math.abs(60 - new URLSearchParams(location.search).get('page')) <= 1", "true")
	b.Becomes("nothing is beyond the edge", "document.documentElement.scrollWidth", "390")
}

// TestALongTableIsAccessible has axe check a table with visible rows and parts without rows.
func TestALongTableIsAccessible(t *testing.T) {
	s, address, _ := thousands(t)
	axe, b := axeOf(t), testbrowser.New(t)
	b.Do(chromedp.Navigate(address+s.Entrance()), chromedp.WaitVisible("#bulk"))
	for _, scheme := range []string{"light", "dark"} {
		looksAt(b, address+"/?page=20", scheme, 1440)
		b.Becomes("the page of the address", topRow, nameOfRow(s, 1900))
		b.JS(fmt.Sprintf(scrollTo, 5150))
		b.Becomes("another page", topRow, nameOfRow(s, 5150))
		if found := inaccessible(b, axe); found != "" {
			t.Errorf("%s: %s", scheme, found)
		}
	}
}

// TestKeysGoBeyondTheLoadedRows has the dashboard answer late. Keys that need rows of the answer
// wait for it, in their order.
func TestKeysGoBeyondTheLoadedRows(t *testing.T) {
	s, address, _ := thousands(t)
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(address+s.Entrance()), chromedp.WaitVisible("#bulk"))
	const focus = `document.activeElement.closest("tr")?.querySelector("input").value`
	loaded := func(row int) string { return `!!document.querySelector("[value='` + nameOfRow(s, row) + `']")` }
	// from puts the focus on a row beside a page that is not loaded, and keeps the answers
	from := func(row int) {
		t.Helper()
		b.JS(`(window.real ??= fetch, window.held = [], window.fetch = (...of) => new Promise(send => held.push(send)).then(() => real(...of)))`)
		b.JS(`document.querySelector("[value='` + nameOfRow(s, row) + `']").closest("tr").querySelector("th a").focus()`)
	}
	const answers = `(window.fetch = real, held.forEach(send => send()))`
	b.Becomes("the second page is loaded", loaded(199), "true")
	from(198)
	b.Do(chromedp.KeyEvent("jjjxj"))
	b.Becomes("the last loaded row has the focus", focus, nameOfRow(s, 199))
	b.Becomes("the rows are awaited", "long.steps.join()", "1,1,0,1")
	b.Becomes("nothing is selected", selected, "Select all in view")
	b.Becomes("they are requested", `held.length`, "1")
	b.JS(answers)
	b.Becomes("the keys go on", focus, nameOfRow(s, 202))
	b.Becomes("and select the row between", selected+` + document.querySelector("[value='`+nameOfRow(s, 201)+`']").checked`, "1 selectedtrue")
	visibleRow := `(() => { const at = document.activeElement.getBoundingClientRect(), seen = visible();
		return at.top >= seen.top && at.bottom <= seen.bottom; })()`
	b.Becomes("the row is visible", visibleRow, "true")

	b.JS(fmt.Sprintf(scrollTo, 5150))
	b.Becomes("a far page", topRow, nameOfRow(s, 5150))
	b.Becomes("its neighbor", loaded(5000), "true")
	b.JS(`document.activeElement.blur()`)
	b.Do(chromedp.KeyEvent("j"))
	b.Becomes("without a focus, the first visible row gets it", focus, nameOfRow(s, 5150))
	b.JS(fmt.Sprintf(scrollTo, 5050))
	b.Becomes("another far page", topRow, nameOfRow(s, 5050))
	b.Becomes("all near pages are loaded", loaded(4999)+` && long.loads.size === 0`, "true")
	from(5001)
	b.JS(`empty(long.parts[49])`)
	b.Do(chromedp.KeyEvent("kkk"))
	b.Becomes("the first loaded row has the focus", focus, nameOfRow(s, 5000))
	b.Becomes("two steps wait", "long.steps.join()", "-1,-1")
	b.Becomes("they wait for an answer", "long.loads.has(50)", "true")
	b.Do(chromedp.Click("h1"))
	b.JS(answers)
	b.Becomes("the rows arrive", loaded(4999), "true")
	b.Becomes("a click has ended the steps", "long.steps.join() + "+focus, "undefined")

	b.JS(fmt.Sprintf(scrollTo, 9999))
	b.Becomes("the last page", loaded(9999), "true")
	b.JS(`document.querySelector("[value='` + nameOfRow(s, 9999) + `']").closest("tr").querySelector("th a").focus()`)
	b.Do(chromedp.KeyEvent("jj"))
	b.Becomes("the last row stays", "long.steps.join() + "+focus, nameOfRow(s, 9999))
}
