package dashboard

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testbrowser"
)

func TestTheNearestNameIsFoundFirst(t *testing.T) {
	entryAs := func(resource, namespace, bare, displayName string) *entry {
		return &entry{resource: resource, namespace: namespace, bare: bare, name: namespace + "/" + bare, displayName: displayName}
	}
	all := []*entry{
		entryAs(bundles, "a", "shop", ""), entryAs(bundles, "a", "webhooks", ""), entryAs(clusters, "a", "east", "Web of the East"),
		entryAs(clusters, "web", "north", ""), entryAs(bundles, "a", "web", ""), entryAs(clusters, "a", "web-1", ""),
	}
	for text, want := range map[string]string{
		"Web": "a/web a/web-1 a/webhooks a/east web/north", "a/web": "a/web a/web-1 a/webhooks", "EAST": "a/east", "nothing": "",
	} {
		var names []string
		for _, e := range nearest(all, text) {
			names = append(names, e.name)
		}
		if diff := cmp.Diff(want, strings.Join(names, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestATenantFindsOnlyWhatTheTenantMayList(t *testing.T) {
	r := newRig(t)
	workspace, other := r.workspace("finding"), r.workspace("finding-other")
	r.cluster(workspace, "findable-a", "", "", nil)
	r.cluster(other, "findable-b", "", "", nil)
	tenant := r.tenant("finder", workspace, rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{clusters}, Verbs: []string{"get", "list"},
	})
	address := r.shared()
	page := r.ask(http.MethodGet, address+"/find?q=findable", tenant, "")
	if !strings.Contains(page.text, "findable-a") || strings.Contains(page.text, "findable-b") {
		t.Errorf("the tenant finds:\n%s", page.text)
	}
	if got := r.ask(http.MethodGet, address+"/find?q=findable", "", ""); strings.Contains(got.text, "findable-") {
		t.Errorf("a stranger finds:\n%s", got.text)
	}
	if page := r.ask(http.MethodGet, address+"/find?q=%3Cscript%3E", tenant, ""); strings.Contains(page.text, "<script>") {
		t.Errorf("the text is not escaped:\n%s", page.text)
	}
}

func TestAnythingIsFoundByKeys(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("keyed-find")
	r.cluster(workspace, "sought-1", "", "", nil)
	r.cluster(workspace, "sought-2", "", "", nil)
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.WaitVisible("#find li a"))
	b.Becomes("it lists the pages first", `document.querySelector("#find li a span").firstChild.textContent.trim()`, "Fleet")
	b.Do(chromedp.SendKeys("#find input", "sought"))
	b.Becomes("both are found", `document.querySelectorAll("#find li").length`, "2")
	b.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.Becomes("the second opens", `location.pathname`, "/members/keyed-find/sought-2")
	b.Do(chromedp.WaitVisible("[data-find]"), chromedp.Click("[data-find]"), chromedp.WaitVisible("#find li a"),
		chromedp.SendKeys("#find input", "sought-1"))
	b.Becomes("one is found", `document.querySelectorAll("#find li").length`, "1")
	b.Do(chromedp.KeyEvent(kb.Enter))
	b.Becomes("the first result opens", `location.pathname`, "/members/keyed-find/sought-1")
}
