package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/testbrowser"
	"github.com/muster-fleet/muster/internal/testkube"
)

func decides(what string, o client.Object, seen string) string {
	return url.Values{"decision": {what}, "uid": {string(o.GetUID())}, "reason": {seen}}.Encode()
}

// grants gives an account of tenant a right that holds in all namespaces.
func (r rig) grants(account string, rules ...rbacv1.PolicyRule) {
	r.t.Helper()
	meta := metav1.ObjectMeta{Name: "grants-" + account}
	r.check(r.Create(r.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}))
	r.check(r.Create(r.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: account}},
	}))
}

func TestWhoMayNotDrainAMemberCannot(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("draining")
	web := r.cluster(workspace, "web", "", "", nil)
	rule := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{clusters}, Verbs: verbs}
	}
	address := r.shared()
	reader := r.tenant("drain-reader", workspace, rule("get", "list"))
	editor := r.tenant("drain-editor", workspace, rule("get", "list", "patch"))
	operator := r.tenant("drain-operator", workspace, rule("get", "list", "patch", "cordon"))
	path := address + "/members/draining/web"
	missing, uncordoned := "You need the right to create and get and delete "+evictions, "You need the right to patch and cordon clusters."
	for token, want := range map[string][2]string{
		reader: {uncordoned, uncordoned}, editor: {uncordoned, uncordoned}, operator: {missing, ""},
	} {
		page := r.ask(http.MethodGet, path, token, "").text
		for i, value := range []string{"drain", "cordon"} {
			_, button, _ := strings.Cut(page, `value="`+value+`"`)
			button, _, _ = strings.Cut(button, "</form>")
			if button == "" || strings.Contains(button, " disabled ") != (want[i] != "") || !strings.Contains(button, want[i]) {
				t.Errorf("the button %s is %s, want %q", value, button, want[i])
			}
		}
	}
	bulk := func(token string) string {
		return r.ask(http.MethodPost, address+"/bulk", token, url.Values{"action": {"drain"}, "member": {"draining/web"},
			"uid": {string(web.UID)}, "seen": {"cordon drain"}, "back": {"/"}}.Encode()).text
	}
	for token, want := range map[string]string{reader: "Drain: " + uncordoned, operator: "Drain: " + missing} {
		if page := r.ask(http.MethodGet, address+"/", token, "").text; !strings.Contains(page, want) {
			t.Errorf("the page of the fleet does not say %q:\n%s", want, page)
		}
		if page := bulk(token); !strings.Contains(page, strings.TrimPrefix(want, "Drain: ")) || !strings.Contains(page, "Drain: 0 changed") {
			t.Errorf("the action on several members does not say %q:\n%s", want, page)
		}
	}
	r.grants("drain-operator", rbacv1.PolicyRule{
		APIGroups: []string{placement.GroupVersion.Group}, Resources: []string{evictions, works},
		Verbs: []string{"get", "list", "create", "delete"},
	})
	for what, got := range map[string]answer{
		"403 who may only read":     r.ask(http.MethodPost, path, reader, decides("drain", web, "cordon drain")),
		"403 who may not cordon":    r.ask(http.MethodPost, path, editor, decides("drain", web, "cordon drain")),
		"401 nobody":                r.ask(http.MethodPost, path, "", decides("drain", web, "cordon drain")),
		"400 who saw another state": r.ask(http.MethodPost, path, editor, decides("drain", web, "uncordon")),
		"403 a page of another site": r.ask(http.MethodPost, path, operator, decides("drain", web, "cordon drain"),
			"Sec-Fetch-Site", "cross-site"),
		"400 another of its name":     r.ask(http.MethodPost, path, operator, decides("drain", &fleet.Cluster{}, "cordon drain")),
		"403 nor cordon":              r.ask(http.MethodPost, path, reader, decides("cordon", web, "cordon drain")),
		"400 an end without a cordon": r.ask(http.MethodPost, path, operator, decides("uncordon", web, "drain uncordon")),
	} {
		if want, _, _ := strings.Cut(what, " "); want != strconv.Itoa(got.status) {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if len(web.Annotations) > 0 {
		t.Fatalf("it was changed: %v", web.Annotations)
	}
}

// evicted waits for another eviction from a member, and writes its result.
func (r rig) evicted(member, executed, message string) {
	r.t.Helper()
	testkube.Eventually(r.t, "there is an eviction", func() error {
		var list placement.ClusterResourcePlacementEvictionList
		if err := r.List(r.t.Context(), &list); err != nil {
			return err
		}
		for i := range list.Items {
			e := &list.Items[i]
			if e.Spec.ClusterName != member || e.Annotations[placement.AnnotationDrain] != "true" || len(e.Status.Conditions) > 0 {
				continue
			}
			for kind, status := range map[string]string{placement.ConditionEvictionValid: "True", placement.ConditionEvictionExecuted: executed} {
				e.Status.Conditions = append(e.Status.Conditions, metav1.Condition{
					Type: kind, Status: metav1.ConditionStatus(status), Reason: "Test", Message: message, LastTransitionTime: metav1.Now(),
				})
			}
			return r.Status().Update(r.t.Context(), e)
		}
		return fmt.Errorf("there are %d, and no new one", len(list.Items))
	})
}

// TestADrainGoesOnUntilItsEndOrAnUncordon lets a budget hold a placement, uncordons the member, and
// drains it again.
func TestADrainGoesOnUntilItsEndOrAnUncordon(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	member := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "leaky"},
		Spec:       clusterv1beta1.MemberClusterSpec{Identity: rbacv1.Subject{Kind: rbacv1.UserKind, Name: "leaky"}},
	}
	r.check(r.Create(ctx, member))
	crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "drained-shop"}, Spec: placement.PlacementSpec{
		ResourceSelectors: []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "shop"}},
		Policy:            &placement.PlacementPolicy{PlacementType: placement.PickN, NumberOfClusters: new(int32(1))},
	}}
	r.check(r.Create(ctx, crp))
	work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace(membership.Namespace(member)), Name: "drained-shop-work",
		Labels: map[string]string{placement.LabelParentCRP: crp.Name}}}
	r.check(r.Create(ctx, work))
	address, admin, other := r.shared(), r.Account(t, "drain-admin", "cluster-admin"), r.Account(t, "drain-other", "cluster-admin")
	path := address + "/members/leaky"
	decide := func(what, seen string) {
		t.Helper()
		if got := r.ask(http.MethodPost, path, admin, decides(what, member, seen)); got.status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", what, got.status, got.text)
		}
	}
	says := func(token, text string) {
		t.Helper()
		testkube.Eventually(t, "the page says "+text, func() error {
			if page := r.ask(http.MethodGet, path, token, "").text; !strings.Contains(page, text) {
				return fmt.Errorf("it says %s", page)
			}
			return nil
		})
	}
	decide("drain", "cordon drain")
	says(admin, "system:serviceaccount:default:drain-admin drains this member since")
	if got := r.ask(http.MethodPost, path, admin, decides("drain", member, "drain uncordon")); got.status != http.StatusBadRequest ||
		!strings.Contains(got.text, "is being drained already") {
		t.Errorf("a second drain: %d %s", got.status, got.text)
	}
	r.evicted("leaky", "False", "the budget does not allow it")
	says(admin, "ClusterResourcePlacement drained-shop waits: the budget does not allow it")
	says(other, "0 of 1 placements have moved")
	says(other, "A user drains this member. Last sign of life:")
	elsewhere := r.shared()
	for _, token := range []string{admin, other} {
		if page := r.ask(http.MethodGet, elsewhere+"/members/leaky", token, "").text; !strings.Contains(page, "0 of 1 placements have moved") {
			t.Errorf("another replica does not show the drain:\n%s", page)
		}
	}
	if page := r.ask(http.MethodGet, path, other, "").text; strings.Contains(page, "drained-shop") {
		t.Errorf("another visitor sees the steps:\n%s", page)
	}
	decide("uncordon", "drain uncordon")
	says(admin, "MemberCluster leaky is no longer cordoned, so the drain has stopped")
	r.check(r.Get(ctx, client.ObjectKeyFromObject(member), member))
	if len(member.Annotations) > 0 {
		t.Errorf("after the uncordon it has %v", member.Annotations)
	}
	decide("drain", "cordon drain")
	r.evicted("leaky", "True", "")
	r.check(r.Delete(ctx, work))
	says(admin, ": 1 placements moved")
	r.check(r.Get(ctx, client.ObjectKeyFromObject(member), member))
	if !membership.Drained(member) || member.Annotations[fleet.AnnotationDrainProgress] != "" {
		t.Errorf("after the drain it has %v", member.Annotations)
	}
	testkube.Eventually(t, "its evictions are gone", func() error {
		var list placement.ClusterResourcePlacementEvictionList
		if err := r.List(ctx, &list); err != nil {
			return err
		}
		for i := range list.Items {
			if e := &list.Items[i]; e.Spec.ClusterName == "leaky" && len(e.Status.Conditions) > 0 {
				return fmt.Errorf("there is %s", e.Name)
			}
		}
		return nil
	})
}

// TestADrainIsAccessible has axe check the page of a member in each state of a drain, in both
// themes: a drain of the visitor, and the progress of a drain by another process.
func TestADrainIsAccessible(t *testing.T) {
	r := newRig(t)
	axe := axeOf(t)
	s, err := NewOwned(r.t.Context(), Options{Config: r.Config})
	r.check(err)
	entrance := r.serve(s) + s.Entrance()
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(entrance), chromedp.WaitVisible("#view"))
	origin, visitor := b.JS("location.origin"), b.JS(`document.querySelector(".visitor").textContent`)
	now := time.Now()
	states := []struct {
		name, shows string
		seen        time.Time
		own         func(*shownDrain)
	}{
		{"seen-now", "A user drains this member.", now, nil},
		{"not-seen", "The drain has stopped.", now.Add(-time.Hour), nil},
		{"own", "To stop the drain, uncordon the member.", now, func(d *shownDrain) {
			d.Steps = []string{"MemberCluster own is cordoned", "ClusterResourcePlacement shop waits: the budget does not allow it"}
		}},
		{"own-ended", "3 placements moved.", now, func(d *shownDrain) {
			d.Ended, d.Moved, d.Stays = now, 3, []string{"Bundle fleet/shop: a drain moves no Bundles"}
		}},
		{"own-failed", "the member is no longer cordoned", now, func(d *shownDrain) {
			d.Ended, d.Problem = now, "the member is no longer cordoned, so the drain has stopped"
		}},
	}
	for _, state := range states {
		member := &clusterv1beta1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "drained-" + state.name, Annotations: map[string]string{fleet.AnnotationCordoned: "true"}},
			Spec:       clusterv1beta1.MemberClusterSpec{Identity: rbacv1.Subject{Kind: rbacv1.UserKind, Name: state.name}},
		}
		progress := membership.DrainProgress{Moved: 2, Total: 5, Seen: metav1.NewTime(state.seen)}
		member.Annotations[fleet.AnnotationDrainProgress] = progress.Value()
		r.check(r.Create(t.Context(), member))
		if state.own != nil {
			r.check(s.drains.begin(member, visitor, now))
			s.drains.change(member.Name, member.UID, state.own)
		}
		for _, scheme := range []string{"light", "dark"} {
			looksAt(b, origin+"/members/"+member.Name, scheme, 1280)
			b.JS(unfolded)
			section := `document.querySelector("section[aria-labelledby=drain]").innerText.includes("` + state.shows + `")`
			if b.JS(section) != "true" {
				t.Errorf("%s, %s: the page does not say %q", state.name, scheme, state.shows)
			}
			if found := inaccessible(b, axe); found != "" {
				t.Errorf("%s, %s: %s", state.name, scheme, found)
			}
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		looksAt(b, origin+"/?name=drained-", scheme, 1280)
		b.Becomes("the table says so, too", `document.querySelector("#bulk").innerText.includes("draining: 2 of 5 placements moved")`, "true")
		if found := inaccessible(b, axe); found != "" {
			t.Errorf("the table, %s: %s", scheme, found)
		}
	}
}

func TestOneProcessRunsABoundedNumberOfDrains(t *testing.T) {
	var ds drains
	now := time.Now()
	member := func(i int) client.Object {
		return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i), UID: types.UID(fmt.Sprint(i))}}
	}
	for i := range mostDrains {
		if err := ds.begin(member(i), "ada", now); err != nil {
			t.Fatal(err)
		}
	}
	if err := ds.begin(member(mostDrains), "ada", now); err == nil {
		t.Error("one more drain begins")
	}
	ds.change("m0", "0", func(d *shownDrain) { d.Ended = now })
	if err := ds.begin(member(mostDrains), "ada", now.Add(2*drainShown)); err != nil || ds.of(member(0), "ada") != nil {
		t.Errorf("after the end of a drain: %v, %v", err, ds.of(member(0), "ada"))
	}
}
