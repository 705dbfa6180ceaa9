package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/testbrowser"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestWhatCanBeDecidedAboutAMember(t *testing.T) {
	now := metav1.Now()
	cluster := func(approved corev1.ConditionStatus, annotations map[string]string) *fleet.Cluster {
		c := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "web", Annotations: annotations}}
		if approved != "" {
			c.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeliveryApproved, Status: approved}}
		}
		return c
	}
	leaving := cluster("False", nil)
	leaving.DeletionTimestamp = &now
	for what, c := range map[string]struct {
		record client.Object
		want   string
	}{
		"a Cluster of a workspace that does not ask": {cluster("", nil), "quarantine revoke"},
		"one that waits for somebody":                {cluster("False", nil), "approve deny quarantine revoke"},
		"one that was denied": {
			cluster("False", map[string]string{fleet.AnnotationApproved: "false"}),
			"approve quarantine revoke",
		},
		"one that was approved": {
			cluster("True", map[string]string{fleet.AnnotationApproved: "true"}),
			"deny quarantine revoke",
		},
		"one that was revoked": {
			cluster("", map[string]string{clusterv1beta1.AnnotationRevoked: "true"}),
			"quarantine readmit",
		},
		"one that leaves": {leaving, ""},
		"one that is quarantined": {
			cluster("", map[string]string{fleet.AnnotationQuarantined: "true"}),
			"unquarantine revoke",
		},
		"a MemberCluster": {&clusterv1beta1.MemberCluster{}, "quarantine revoke"},
	} {
		if got := decidable(c.record); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

// awaiting has the hub say of a Cluster that it waits for approval. What is decided about it is
// gone after the test.
func (r rig) awaiting(c *fleet.Cluster) *fleet.Cluster {
	r.t.Helper()
	r.t.Cleanup(func() { r.check(r.Delete(context.Background(), c)) })
	c.Status.Conditions = append(c.Status.Conditions, fleet.Condition{
		Type: fleet.ConditionDeliveryApproved, Status: corev1.ConditionFalse, Reason: "ApprovalRequired", Message: "somebody approves it",
	})
	r.check(r.Status().Update(r.t.Context(), c))
	return c
}

// guardApproval has the API server ask for the verb approve, as the chart of the hub does, and
// waits until it does of a user who may edit a Cluster only.
func (r rig) guardApproval(editor string, c *fleet.Cluster) {
	r.t.Helper()
	r.InstallTemplate(r.t, "fleet/templates/admission-registration.yaml")
	config := rest.CopyConfig(r.Config)
	config.Impersonate.UserName = "system:serviceaccount:default:" + editor
	as, err := client.New(config, client.Options{Scheme: r.Scheme()})
	r.check(err)
	testkube.Eventually(r.t, "an approval of "+editor+" is refused", func() error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+fleet.AnnotationApproved+`":"true"}}}`))
		if err := as.Patch(r.t.Context(), c.DeepCopy(), patch, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("it is not: %v", err)
		}
		return nil
	})
}

func TestWhoMayNotDecideAboutAMemberCannot(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("deciding")
	web := r.awaiting(r.cluster(workspace, "web", "", "", nil))
	rule := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{clusters}, Verbs: verbs}
	}
	address := r.shared()
	reader, editor, approver := r.tenant("member-reader", workspace, rule("get", "list")),
		r.tenant("member-editor", workspace, rule("get", "list", "patch")),
		r.tenant("member-approver", workspace, rule("get", "list", "patch", "approve"))
	r.guardApproval("member-editor", web)
	path := address + "/members/deciding/web"
	for token, offered := range map[string][3]bool{reader: {false, false, false}, editor: {false, false, true}, approver: {true, true, true}} {
		page := r.ask(http.MethodGet, path+"?tab=access", token, "").text
		for i, value := range []string{"approve", "deny", "revoke"} {
			_, button, _ := strings.Cut(page, `value="`+value+`"`)
			button, _, _ = strings.Cut(button, "</form>")
			refused := strings.Contains(button, " disabled ") && strings.Contains(button, "You need the right to patch")
			if button == "" || refused == offered[i] {
				t.Errorf("%s is offered: %t, with %s", value, !refused, button)
			}
		}
	}
	form := func(decision, uid, reason string) string {
		return url.Values{"decision": {decision}, "uid": {uid}, "reason": {reason}}.Encode()
	}
	is, now := string(web.UID), "approve deny quarantine revoke"
	for what, got := range map[string]answer{
		"403 who may only read":               r.ask(http.MethodPost, path, reader, form("approve", is, now)),
		"403 who may only read, to revoke":    r.ask(http.MethodPost, path, reader, form("revoke", is, now)),
		"403 who may edit, but not approve":   r.ask(http.MethodPost, path, editor, form("approve", is, now)),
		"403 nor deny":                        r.ask(http.MethodPost, path, editor, form("deny", is, now)),
		"401 nobody":                          r.ask(http.MethodPost, path, "", form("approve", is, now)),
		"403 a page of another site":          r.ask(http.MethodPost, path, approver, form("approve", is, now), "Sec-Fetch-Site", "cross-site"),
		"403 another workspace":               r.ask(http.MethodPost, address+"/members/others/web", approver, form("approve", is, now)),
		"400 another Cluster of its name":     r.ask(http.MethodPost, path, approver, form("approve", "another", now)),
		"400 one that does not wait any more": r.ask(http.MethodPost, path, approver, form("approve", is, "deny quarantine revoke")),
		"400 another decision":                r.ask(http.MethodPost, path, approver, form("perhaps", is, now)),
	} {
		if want, _, _ := strings.Cut(what, " "); want != strconv.Itoa(got.status) {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if len(web.Annotations) > 0 {
		t.Fatalf("it was decided: %v", web.Annotations)
	}
	if got := r.ask(http.MethodPost, path, approver, form("approve", is, now)+"&because=+ticket+4711+"); got.status != http.StatusSeeOther ||
		got.header.Get("Location") != "/members/deciding/web" {
		t.Errorf("the approver: %d %s", got.status, got.text)
	}
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if web.Annotations[fleet.AnnotationApproved] != "true" || web.Annotations[fleet.AnnotationApprovalReason] != "ticket 4711" {
		t.Errorf("it is not approved with its reason: %v", web.Annotations)
	}
}

func TestDecidingAboutAMemberInTheBrowser(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("judging")
	web := r.awaiting(r.cluster(workspace, "web", "", "", nil))
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.Navigate(b.JS("location.origin") + "/members/judging/web"))
	annotation := func(name string) func() error {
		return func() error {
			if err := r.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil || web.Annotations[name] != "true" {
				return fmt.Errorf("%v %v", web.Annotations, err)
			}
			return nil
		}
	}
	b.Do(chromedp.WaitVisible("button[value=approve]"), chromedp.Click("button[value=approve]"), chromedp.WaitVisible("h1"))
	testkube.Eventually(t, "it is approved", annotation(fleet.AnnotationApproved))
	web.Status.Conditions[1].Status = corev1.ConditionTrue // as the hub says then
	r.check(r.Status().Update(t.Context(), web))
	b.Becomes("nobody is waited for", `document.querySelector(".decision [name=reason]").value`, "deny quarantine revoke")
	b.Do(chromedp.Navigate(b.JS("location.href")+"?tab=access"), chromedp.WaitVisible("details.make"),
		chromedp.Click("details.make summary"), chromedp.WaitVisible("button[value=revoke]"), chromedp.Click("button[value=revoke]"),
		chromedp.WaitVisible("button[value=readmit]"))
	testkube.Eventually(t, "it is revoked", annotation(clusterv1beta1.AnnotationRevoked))
}

func TestNothingMovesWhileSomebodyPointsAtADecision(t *testing.T) {
	r := newRig(t)
	web := r.awaiting(r.cluster(r.workspace("pointing"), "web", "", "", nil))
	b := testbrowser.New(t)
	b.Do(chromedp.Navigate(r.owned()), chromedp.WaitVisible("#view"))
	b.Do(chromedp.Navigate(b.JS("location.origin") + "/members/pointing/web"))
	b.Becomes("it is live", liveness, "live")
	place := func(selector, axis string) float64 {
		at, err := strconv.ParseFloat(b.JS(fmt.Sprintf("document.querySelector(%q).getBoundingClientRect().%s", selector, axis)), 64)
		r.check(err)
		return at
	}
	pointAt := func(selector string) {
		x, y := place(selector, "left"), place(selector, "top")
		b.Do(chromedp.MouseEvent(chromedp.MouseMoved, x+3, y+3), chromedp.MouseEvent(chromedp.MouseMoved, x+5, y+5))
	}
	const state = `document.querySelector("h1 .state").textContent`
	pointAt("button[value=approve]")
	r.says(web, "NotReady", "its node is full")
	b.Becomes("the page says that it waits", liveness, "not live")
	if got := b.JS(state); got != "Ready" {
		t.Errorf("what somebody points at has moved: it is %s", got)
	}
	pointAt("h1")
	b.Becomes("what has changed meanwhile", state, "NotReady")
	b.Becomes("it is live again", liveness, "live")
}
