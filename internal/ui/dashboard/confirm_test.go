package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// held makes a Bundle that waits for a user to confirm a removal by a value, or for nothing if the
// value is empty.
func (r rig) held(workspace, name, value string) *fleet.Bundle {
	r.t.Helper()
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: name}}
	r.check(r.Create(r.t.Context(), b))
	r.t.Cleanup(func() { r.check(r.Delete(context.Background(), b)) })
	if value != "" {
		b.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionProcessed, Status: corev1.ConditionFalse, Reason: "RemovalHeld",
			Message: "6 of 6 Clusters would lose it: c0; kubectl annotate " + name + " muster/confirm-removal=" + value}}
		r.check(r.Status().Update(r.t.Context(), b))
	}
	return b
}

func TestWhoMayNotPatchABundleConfirmsNoRemoval(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("confirming")
	web, fine := r.held(workspace, "web", "0cebe578"), r.held(workspace, "fine", "")
	rule := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{bundles}, Verbs: verbs}
	}
	address := r.shared()
	reader, editor := r.tenant("bundle-reader", workspace, rule("get", "list")),
		r.tenant("bundle-editor", workspace, rule("get", "list", "patch"))
	path, finePath := address+"/deliveries/bundles/confirming/web", address+"/deliveries/bundles/confirming/fine"
	const button = `value="confirm"`
	for token, offered := range map[string]bool{reader: false, editor: true} {
		page := r.ask(http.MethodGet, path, token, "").text
		if strings.Contains(page, button) != offered || !strings.Contains(page, "6 of 6 Clusters would lose it: c0") {
			t.Errorf("the confirmation is offered: %t\n%s", !offered, page)
		}
	}
	if page := r.ask(http.MethodGet, finePath, editor, "").text; strings.Contains(page, button) {
		t.Errorf("a confirmation is offered of nothing:\n%s", page)
	}
	form := func(decision, uid, value string) string {
		return url.Values{"decision": {decision}, "uid": {uid}, "reason": {value}}.Encode()
	}
	is, now := string(web.UID), "0cebe578"
	for what, got := range map[string]answer{
		"403 who may only read":      r.ask(http.MethodPost, path, reader, form("confirm", is, now)),
		"401 nobody":                 r.ask(http.MethodPost, path, "", form("confirm", is, now)),
		"403 a page of another site": r.ask(http.MethodPost, path, editor, form("confirm", is, now), "Sec-Fetch-Site", "cross-site"),
		"403 another workspace": r.ask(http.MethodPost, address+"/deliveries/bundles/others/web", editor,
			form("confirm", is, now)),
		"400 another Bundle of its name":          r.ask(http.MethodPost, path, editor, form("confirm", "another", now)),
		"400 a removal that it waits for no more": r.ask(http.MethodPost, path, editor, form("confirm", is, "335f9122")),
		"400 no value":               r.ask(http.MethodPost, path, editor, form("confirm", is, "")),
		"400 what waits for nothing": r.ask(http.MethodPost, finePath, editor, form("confirm", string(fine.UID), "")),
		"400 another decision":       r.ask(http.MethodPost, path, editor, form("approve", is, now)),
		"400 another kind": r.ask(http.MethodPost, address+"/deliveries/clusters/confirming/web", editor,
			form("confirm", is, now)),
	} {
		if want, _, _ := strings.Cut(what, " "); want != strconv.Itoa(got.status) {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
	for _, b := range []*fleet.Bundle{web, fine} {
		r.check(r.Get(t.Context(), client.ObjectKeyFromObject(b), b))
		if len(b.Annotations) > 0 {
			t.Fatalf("%s is confirmed: %v", b.Name, b.Annotations)
		}
	}
	if got := r.ask(http.MethodPost, path, editor, form("confirm", is, now)); got.status != http.StatusSeeOther ||
		got.header.Get("Location") != "/deliveries/bundles/confirming/web" {
		t.Errorf("who may patch it: %d %s", got.status, got.text)
	}
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if web.Annotations[fleet.AnnotationConfirmRemoval] != now {
		t.Errorf("it is not confirmed: %v", web.Annotations)
	}
}
