package dashboard

import (
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// sourced creates an object that makes a Bundle, and the Bundle.
func (r rig) sourced(owner client.Object, kind, label string) {
	r.t.Helper()
	r.check(client.IgnoreAlreadyExists(r.Create(r.t.Context(), owner)))
	r.check(r.Get(r.t.Context(), client.ObjectKeyFromObject(owner), owner))
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: owner.GetNamespace(), Name: owner.GetName() + "-made",
		Labels:          map[string]string{label: owner.GetName()},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, fleet.GroupVersion.WithKind(kind))}}}
	r.check(client.IgnoreAlreadyExists(r.Create(r.t.Context(), bundle)))
}

// TestTheSourcesOfBundlesHavePages plays a reader of Bundles and their sources, and one of Bundles
// only.
func TestTheSourcesOfBundlesHavePages(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("sources")
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "shop"}, Spec: fleet.GitRepoSpec{
		Repo: "https://git.example.com/shop", Targets: []fleet.GitTarget{{Name: "prod",
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}}}}
	r.sourced(repo, "GitRepo", fleet.LabelRepoName)
	now := metav1.Now()
	repo.Status = fleet.GitRepoStatus{Commit: "1111111111", PollingCommit: "2222222222", LastWebhookTime: &now,
		Display: fleet.SourceDisplay{ReadyBundleDeployments: "3/4"}, Conditions: []fleet.Condition{
			kube.Condition(fleet.ConditionReady, false, "CommitUnreadable", "commit 2222222222: web/fleet.yaml:1: unknown key a")}}
	r.check(r.Status().Update(t.Context(), repo))
	op := &fleet.HelmOp{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "web"}}
	op.Spec.Helm = &fleet.HelmOptions{Repo: "https://charts.example.com", Chart: "nginx", Version: "^1"}
	r.sourced(op, "HelmOp", fleet.LabelHelmOpName)
	op.Status.Version = "1.2.3"
	r.check(r.Status().Update(t.Context(), op))
	stranger := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "strange",
		Labels: map[string]string{fleet.LabelRepoName: "shop"}}}
	r.check(client.IgnoreAlreadyExists(r.Create(t.Context(), stranger)))

	rule := func(resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: resources, Verbs: []string{"get", "list"}}
	}
	address := r.shared()
	reader := r.tenant("source-reader", workspace, rule(bundles, gitRepos, helmOps))
	partial := r.tenant("bundle-only", workspace, rule(bundles))
	for path, parts := range map[string][]string{
		"/deliveries": {`href="/deliveries/gitrepos/sources/shop"`, `href="/deliveries/helmops/sources/web"`, "</progress> 3/4",
			"unknown key a"},
		"/deliveries/gitrepos/sources/shop": {"GitRepo sources/shop", "https://git.example.com/shop", "master", "1111111111", "2222222222",
			"Last webhook", `href="/deliveries/bundles/sources/shop-made"`, "unknown key a", "muster bundle DIRECTORY", "env=prod"},
		"/deliveries/helmops/sources/web": {"HelmOp sources/web", "https://charts.example.com", "nginx", "^1", "1.2.3",
			`href="/deliveries/bundles/sources/web-made"`, "in the ClusterGroup default"},
	} {
		page := r.ask(http.MethodGet, address+path, reader, "")
		for _, part := range parts {
			if !strings.Contains(page.text, part) {
				t.Errorf("%s has no %q: %d\n%s", path, part, page.status, page.text)
			}
		}
		if path != "/deliveries" && strings.Contains(page.text, "strange") {
			t.Errorf("%s has a Bundle of others", path)
		}
		page = r.ask(http.MethodGet, address+path, partial, "")
		if strings.Contains(page.text, "unknown key a") || strings.Contains(page.text, "1.2.3") ||
			path != "/deliveries" && page.status != http.StatusForbidden {
			t.Errorf("who may not read sources sees %s: %d\n%s", path, page.status, page.text)
		}
	}
}
