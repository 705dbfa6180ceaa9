package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testbrowser"
)

func TestAnActionSaysWhatItChangesOnAMember(t *testing.T) {
	member := func(annotations map[string]string) *fleet.Cluster {
		return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"env": "prod", "region": "eu"}, Annotations: annotations}}
	}
	quarantined := member(map[string]string{fleet.AnnotationQuarantined: "true"})
	cordoned, revoked := member(map[string]string{fleet.AnnotationCordoned: "true"}),
		member(map[string]string{clusterv1beta1.AnnotationRevoked: "true"})
	leaving := member(nil)
	leaving.DeletionTimestamp = &metav1.Time{}
	for what, c := range map[string]struct {
		action, labels string
		member         *fleet.Cluster
		want           string
	}{
		"labels that are set, removed and kept": {
			"label", "env=lab,region-,zone=a", member(nil), "gone env=prod,region=eu; added env=lab,zone=a; seen env=prod,region=eu",
		},
		"labels that it has":                {"label", "env=prod zone-", member(nil), "it has these labels already"},
		"a cordon":                          {"cordon", "", member(nil), "gone ; added cordon; seen false"},
		"a cordon of a cordoned one":        {"cordon", "", cordoned, "it is cordoned already"},
		"its end":                           {"uncordon", "", cordoned, "gone ; added uncordon; seen true"},
		"an end without a cordon":           {"uncordon", "", member(nil), "it is uncordoned already"},
		"an approval that is not due":       {"approve", "", member(nil), "it needs no approval"},
		"a quarantine":                      {"quarantine", "", member(nil), "gone ; added quarantine; seen quarantine revoke"},
		"a quarantine of a quarantined one": {"quarantine", "", quarantined, "it is quarantined already"},
		"the end of a quarantine":           {"unquarantine", "", quarantined, "gone ; added unquarantine; seen unquarantine revoke"},
		"the end of none":                   {"unquarantine", "", member(nil), "it is not quarantined"},
		"a revocation":                      {"revoke", "", member(nil), "gone ; added revoke; seen quarantine revoke"},
		"a revocation of a revoked one":     {"revoke", "", revoked, "it is revoked already"},
		"one that leaves":                   {"cordon", "", leaving, "it is leaving the fleet"},
	} {
		a, err := actionNamed(c.action)
		if err != nil {
			t.Fatal(err)
		}
		labels, err := labelsTo(c.labels)
		if err != nil {
			t.Fatal(err)
		}
		gone, added, seen, err := a.change(c.member, labels)
		got := "gone " + strings.Join(gone, ",") + "; added " + strings.Join(added, ",") + "; seen " + seen
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
	for _, text := range []string{"env", "=prod", "-", "env=prod,lab"} {
		if labels, err := labelsTo(text); err == nil {
			t.Errorf("%q is read as %v", text, labels)
		}
	}
}

func TestWhoMayNotChangeMembersChangesNoneOfThem(t *testing.T) {
	r := newRig(t)
	workspace, other := r.workspace("bulk"), r.workspace("bulk-other")
	web, far := r.cluster(workspace, "web", "", "", nil), r.cluster(other, "far", "", "", nil)
	rule := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{clusters}, Verbs: verbs}
	}
	address := r.shared()
	reader, editor := r.tenant("bulk-reader", workspace, rule("get", "list")), r.tenant("bulk-editor", workspace, rule("get", "list", "patch"))
	form := func(action, labels string, uids ...string) string {
		return url.Values{"action": {action}, "labels": {labels}, "member": {"bulk/web", "bulk-other/far"},
			"uid": uids, "seen": {"", ""}, "back": {"/"}}.Encode()
	}
	right := []string{string(web.UID), string(far.UID)}
	for token, want := range map[string]string{
		reader: "You need the right to patch clusters.", editor: "Cordon: You need the right to patch and cordon clusters.",
	} {
		page := r.ask(http.MethodGet, address+"/", token, "").text
		if !strings.Contains(page, want) || strings.Contains(page, `value="label" disabled`) != (token == reader) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	for what, got := range map[string]answer{
		"200 who may only read":       r.ask(http.MethodPost, address+"/bulk", reader, form("label", "env=prod", right...)),
		"200 others of the names":     r.ask(http.MethodPost, address+"/bulk", editor, form("label", "env=prod", "another", "another")),
		"200 who may not cordon":      r.ask(http.MethodPost, address+"/bulk", editor, form("cordon", "", right...)),
		"200 who looks at the effect": r.ask(http.MethodGet, address+"/bulk?"+form("label", "env=prod", right...), editor, ""),
		"400 without what was seen":   r.ask(http.MethodPost, address+"/bulk", editor, form("label", "env=prod")),
		"400 without labels":          r.ask(http.MethodPost, address+"/bulk", editor, form("label", "", right...)),
		"400 labels that are none":    r.ask(http.MethodPost, address+"/bulk", editor, form("label", "env", right...)),
		"400 another action":          r.ask(http.MethodPost, address+"/bulk", editor, form("delete", "", right...)),
		"400 nothing selected":        r.ask(http.MethodGet, address+"/bulk?action=cordon", editor, ""),
		"401 nobody":                  r.ask(http.MethodPost, address+"/bulk", "", form("label", "env=prod", right...)),
		"403 a page of another site": r.ask(http.MethodPost, address+"/bulk", editor, form("label", "env=prod", right...),
			"Sec-Fetch-Site", "cross-site"),
		"400 more than a page of them": r.ask(http.MethodGet, address+"/bulk?action=cordon"+strings.Repeat("&member=a", 101), editor, ""),
	} {
		if want, _, _ := strings.Cut(what, " "); want != strconv.Itoa(got.status) {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
	labels := func() map[string]map[string]string {
		found := map[string]map[string]string{}
		for _, c := range []*fleet.Cluster{web, far} {
			r.check(r.Get(t.Context(), client.ObjectKeyFromObject(c), c))
			found[c.Name] = c.Labels
			if len(c.Annotations) > 0 {
				t.Errorf("%s was changed: %v", c.Name, c.Annotations)
			}
		}
		return found
	}
	if diff := cmp.Diff(map[string]map[string]string{"web": nil, "far": nil}, labels()); diff != "" {
		t.Fatal(diff)
	}
	got := r.ask(http.MethodPost, address+"/bulk", editor, form("label", "env=prod", right...))
	if !strings.Contains(got.text, "Label: 1 changed") || !strings.Contains(got.text, "cannot get resource") {
		t.Errorf("the result is %s", got.text)
	}
	if diff := cmp.Diff(map[string]map[string]string{"web": {"env": "prod"}, "far": nil}, labels()); diff != "" {
		t.Error(diff)
	}
	guard := r.tenant("bulk-guard", workspace, rule("get", "list", "patch", "quarantine"))
	r.ask(http.MethodPost, address+"/bulk", guard, url.Values{
		"action": {"quarantine"}, "member": {"bulk/web"}, "uid": {right[0]}, "seen": {"quarantine revoke"},
		"back": {"/"}, "because": {"odd traffic"},
	}.Encode())
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if got := web.Annotations[fleet.AnnotationQuarantineReason]; got != "odd traffic" {
		t.Errorf("the reason of the quarantine is %q", got)
	}
}

// TestMembersAreLabelledTogetherByKeys goes the whole way with keys only, as a user without a
// mouse does.
func TestMembersAreLabelledTogetherByKeys(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("keyed")
	for _, name := range []string{"a", "b", "c"} {
		r.cluster(workspace, name, "", "", nil)
	}
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.Navigate(b.JS("location.origin")+"/?namespace=keyed"), chromedp.WaitVisible("#bulk"))
	b.Do(chromedp.KeyEvent("?"), chromedp.WaitVisible("#keys"), chromedp.KeyEvent(kb.Escape), chromedp.WaitNotVisible("#keys"))
	b.Do(chromedp.KeyEvent("jxjjxk"))
	b.Becomes("two are selected", `document.querySelector("[data-chosen]").textContent`, "2 selected")
	b.Becomes("the focus is between them", `document.activeElement.textContent`, "keyed/b")
	r.cluster(workspace, "d", "", "", nil)
	b.Becomes("one more", `document.querySelectorAll("#bulk tbody tr").length`, "4")
	b.Becomes("they are selected still", `document.querySelector("[data-chosen]").textContent`, "2 selected")
	b.Do(chromedp.Click(`#bulk [value=label]`), chromedp.WaitVisible("[name=labels]"), chromedp.SendKeys("[name=labels]", "env=lab"+kb.Enter),
		chromedp.WaitVisible("#changes"))
	const changes = `[...document.querySelectorAll("#changes + .wide :is(th a, ins)")].map(e => e.textContent).join(" ")`
	b.Becomes("what changes", changes,
		"keyed/a env=lab keyed/c env=lab")
	b.Do(chromedp.Click(".decision .primary"), chromedp.WaitVisible("#changed"))
	for name, want := range map[string]string{"a": "lab", "b": "", "c": "lab", "d": ""} {
		c := &fleet.Cluster{}
		r.check(r.Get(t.Context(), client.ObjectKey{Namespace: workspace, Name: name}, c))
		if got := c.Labels["env"]; got != want {
			t.Errorf("%s has env=%s", name, got)
		}
	}
	b.Do(chromedp.KeyEvent("gd"))
	b.Becomes("the deliveries", "location.pathname", "/deliveries")
	b.Do(chromedp.WaitVisible("#search"), chromedp.KeyEvent("/"))
	b.Becomes("the search has the focus", "document.activeElement.name", "name")
}
