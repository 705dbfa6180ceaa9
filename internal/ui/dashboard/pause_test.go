package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestADeliveryIsPausedAndRetriedByAnEditorOnly(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("pausing")
	web, made := r.held(workspace, "web", ""), r.held(workspace, "made", "")
	made.Labels = map[string]string{fleet.LabelRepoName: "shop"}
	r.check(r.Update(t.Context(), made))
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "shop"}}
	repo.Spec.Repo = "https://git.example.com"
	r.check(r.Create(t.Context(), repo))
	rule := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{bundles, gitRepos}, Verbs: verbs}
	}
	address := r.shared()
	reader := r.tenant("pause-reader", workspace, rule("get", "list"))
	editor := r.tenant("pause-editor", workspace, rule("get", "list", "patch"))
	path, madePath := address+"/deliveries/bundles/pausing/web", address+"/deliveries/bundles/pausing/made"
	for token, refused := range map[string]bool{reader: true, editor: false} {
		page := r.ask(http.MethodGet, path, token, "").text
		if strings.Contains(page, "You need the right to patch bundles.") != refused || !strings.Contains(page, `value="retry"`) {
			t.Errorf("the buttons are refused: %t\n%s", !refused, page)
		}
	}
	page := r.ask(http.MethodGet, madePath, editor, "").text
	if strings.Contains(page, `value="pause"`) || !strings.Contains(page, "GitRepo pausing/shop") {
		t.Errorf("the Bundle of a GitRepo offers:\n%s", page)
	}
	form := func(decision, uid, state string) string {
		return url.Values{"decision": {decision}, "uid": {uid}, "reason": {state}}.Encode()
	}
	for what, got := range map[string]answer{
		"403 a reader":              r.ask(http.MethodPost, path, reader, form("pause", string(web.UID), "not paused")),
		"403 a reader, to retry":    r.ask(http.MethodPost, path, reader, form("retry", string(web.UID), "not paused")),
		"401 a stranger":            r.ask(http.MethodPost, path, "", form("pause", string(web.UID), "not paused")),
		"400 another Bundle":        r.ask(http.MethodPost, path, editor, form("pause", "another", "not paused")),
		"400 an old page":           r.ask(http.MethodPost, path, editor, form("resume", string(web.UID), "paused")),
		"400 a Bundle of a GitRepo": r.ask(http.MethodPost, madePath, editor, form("pause", string(made.UID), "not paused")),
		"403 a page of another site": r.ask(http.MethodPost, path, editor,
			form("pause", string(web.UID), "not paused"), "Sec-Fetch-Site", "cross-site"),
	} {
		if want, _, _ := strings.Cut(what, " "); want != strconv.Itoa(got.status) {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if web.Generation != 1 {
		t.Fatalf("the Bundle was changed: %+v", web.Spec)
	}
	r.ask(http.MethodPost, path, editor, form("retry", string(web.UID), "not paused"))
	r.ask(http.MethodPost, path, editor, form("pause", string(web.UID), "not paused"))
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if !web.Spec.Paused || web.Spec.ForceSyncGeneration != 1 {
		t.Errorf("the Bundle is %+v, want it paused and retried", web.Spec)
	}
}
