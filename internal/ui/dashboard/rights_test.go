package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// reads are the rights to list and get some resources.
func reads(resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: resources, Verbs: []string{"get", "list"}}
}

func TestAVisitorSeesTheWorkspacesThatKubectlWouldShowHim(t *testing.T) {
	r := newRig(t)
	mine, other := r.workspace("mine"), r.workspace("others")
	r.cluster(mine, "near", "", "", nil)
	r.cluster(other, "far", "", "", nil)
	r.check(client.IgnoreAlreadyExists(r.Create(t.Context(), &fleet.ClusterRegistrationToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "hidden-token"},
	})))
	shop := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "shop"}}
	r.check(r.Create(t.Context(), shop))
	shop.Status.PartitionStatus = []fleet.PartitionStatus{{Name: "canary", Count: 2, Unavailable: 2}, {Name: "rest", Count: 3}}
	r.check(r.Status().Update(t.Context(), shop))
	placed := &placement.ResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "cart"}, Spec: placement.PlacementSpec{
			ResourceSelectors: []placement.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "c"}},
		},
	}
	r.check(r.Create(t.Context(), placed))
	placed.Status.PlacementStatuses = []placement.PerClusterStatus{dated(at("near", placement.ConditionRolloutStarted,
		"its turn has not come", metav1.ConditionFalse)), dated(at("first", placement.ConditionAvailable, "no replicas", metav1.ConditionFalse))}
	r.check(r.Status().Update(t.Context(), placed))
	address, tenant := r.shared(), r.tenant("tenant", mine, reads("clusters"))
	admin := r.Account(t, "dashboard-admin", "cluster-admin")
	for _, row := range []struct {
		path, token string
		status      int
		shows       []string
		hides       []string
	}{
		{"/", tenant, 200, []string{"mine/near"}, []string{"far", "others"}},
		{"/?name=far", tenant, 200, []string{"No member matches"}, []string{"others"}},
		{"/rows", tenant, 200, []string{"mine/near"}, []string{"far", "others"}},
		{"/rows?sort=-version&page=2", tenant, 200, []string{"mine/near"}, []string{"far", "others"}},
		{"/rows?namespace=others", tenant, 200, nil, []string{"far", "<td"}},
		{"/rows", admin, 200, []string{"mine/near", "others/far"}, nil},
		{"/", admin, 200, []string{"mine/near", "others/far"}, nil},
		{"/members/mine/near?tab=deliveries", tenant, 200, []string{"Cluster mine/near", "you may not see it"}, nil},
		{"/members/others/far", tenant, 403, []string{"cannot get resource"}, []string{"v1.36.3"}},
		{"/members/mine/nowhere", tenant, 404, []string{"not found"}, nil},
		{"/registration", tenant, 200, []string{"you may not list clusterregistrationtokens"}, []string{"hidden-token"}},
		{"/registration", admin, 200, []string{"hidden-token"}, nil},
		{"/deliveries", tenant, 200, []string{"you may not list bundles"}, nil},
		{"/?selector=%3D%3D", admin, 400, []string{"write it as for kubectl"}, nil},
		{"/deliveries?selector=%3D%3D", admin, 400, []string{"write it as for kubectl"}, nil},
		{"/registration?selector=%3D%3D", admin, 400, []string{"write it as for kubectl"}, nil},
		{"/live?page=/deliveries?selector=%253D%253D", admin, 400, nil, nil},
		{"/deliveries?name=shop", tenant, 200, []string{"No delivery matches"}, []string{"others"}},
		{"/deliveries?name=shop", admin, 200, []string{"others/shop"}, nil},
		{"/?group=colour", admin, 400, []string{"cannot group members by"}, nil},
		{"/deliveries/bundles/others/shop", tenant, 403, []string{"cannot get resource"}, []string{"canary"}},
		{
			"/deliveries/bundles/others/shop", admin, 200,
			[]string{"Bundle others/shop", "canary", "blocked: 2 unavailable, over the limit", "waiting for earlier partitions"}, nil,
		},
		{"/deliveries/resourceplacements/others/cart", tenant, 403, []string{"cannot get resource"}, []string{"first"}},
		{
			"/deliveries/resourceplacements/others/cart", admin, 200,
			[]string{"1 member waits for its turn until enough other members are available: first (no replicas).", `<a href="/members/near">`}, nil,
		},
		{"/deliveries/secrets/others/shop", admin, 400, []string{"not a kind of delivery"}, nil},
		{"/nothing", admin, 404, nil, nil},
		{"/live?page=/deliveries/secrets/others/shop", admin, 400, nil, nil},
		{"/live?page=/nothing", admin, 400, nil, nil},
	} {
		got := r.ask(http.MethodGet, address+row.path, row.token, "")
		if got.status != row.status {
			t.Errorf("%s: %d, want %d: %s", row.path, got.status, row.status, got.text)
		}
		for _, text := range row.shows {
			if !strings.Contains(got.text, text) {
				t.Errorf("%s does not show %q:\n%s", row.path, text, got.text)
			}
		}
		for _, text := range row.hides {
			if strings.Contains(got.text, text) {
				t.Errorf("%s shows %q:\n%s", row.path, text, got.text)
			}
		}
	}
}

func TestUnknownVisitorsAreSentToTheSignIn(t *testing.T) {
	r := newRig(t)
	shared := r.shared()
	for _, path := range []string{"/", "/rows", "/deliveries", "/registration", "/members/mine/near"} {
		if got := r.ask(http.MethodGet, shared+path, "", ""); got.status != http.StatusSeeOther ||
			got.header.Get("Location") != "/sign-in?to="+url.QueryEscape(path) {
			t.Errorf("%s without a token: %d %s", path, got.status, got.header.Get("Location"))
		}
		if got := r.ask(http.MethodGet, shared+path, "rubbish", ""); got.status != http.StatusSeeOther {
			t.Errorf("%s with rubbish: %d %s", path, got.status, got.text)
		}
	}
	for _, path := range []string{"/live?page=/", "/requests/a/b"} {
		method := http.MethodGet
		if !strings.HasPrefix(path, "/live") {
			method = http.MethodPost
		}
		if got := r.ask(method, shared+path, "", ""); got.status != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, got.status)
		}
	}
	owned := r.owned()
	base := owned[:strings.Index(owned, "/enter")]
	for _, path := range []string{"/", "/rows", "/enter", "/enter?key=wrong", "/members/mine/near"} {
		if got := r.ask(http.MethodGet, base+path, "", ""); got.status != http.StatusUnauthorized || strings.Contains(got.text, owned) {
			t.Errorf("%s of somebody's own dashboard: %d", path, got.status)
		}
	}
	entered := r.ask(http.MethodGet, owned, "", "")
	if cookie := entered.header.Get("Set-Cookie"); !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Errorf("the cookie is %s", strings.Split(cookie, "=")[0])
	}
}

func TestATokenIsNotBlamedForAnAPIServerThatIsAway(t *testing.T) {
	r := newRig(t)
	admin := r.Account(t, "dashboard-admin", "cluster-admin")
	link := testkube.NewLink(t, r.Config.Host)
	r.Config = rest.CopyConfig(r.Config)
	r.Config.Host = link.URL
	address := r.shared()
	link.Become(testkube.Quality{Cut: true})
	got := r.ask(http.MethodPost, address+"/sign-in", "", url.Values{"token": {admin}, "to": {"/"}}.Encode())
	if got.status != http.StatusBadGateway || !strings.Contains(got.text, "cannot check this token at the moment") ||
		strings.Contains(got.text, "127.0.0.1") || got.header.Get("Set-Cookie") != "" || strings.Contains(got.text, admin) {
		t.Errorf("it says %d %s", got.status, got.text)
	}
}

func TestSigningIn(t *testing.T) {
	r := newRig(t)
	address, admin := r.shared(), r.Account(t, "dashboard-admin", "cluster-admin")
	form := func(token, to string) string { return url.Values{"token": {token}, "to": {to}}.Encode() }
	if got := r.ask(http.MethodPost, address+"/sign-in", "", form("rubbish", "/")); got.status != http.StatusUnauthorized ||
		!strings.Contains(got.text, "rejects this token") ||
		got.header.Get("Set-Cookie") != "" || strings.Contains(got.text, "rubbish") {
		t.Errorf("with rubbish: %d %s", got.status, got.text)
	}
	if got := r.ask(http.MethodPost, address+"/sign-in", "", form(strings.Repeat("x", 5000), "/")); got.status != http.StatusBadRequest ||
		!strings.Contains(got.text, "browsers keep at most") {
		t.Errorf("with a token that no browser keeps: %d %s", got.status, got.text)
	}
	for to, want := range map[string]string{
		"/deliveries": "/deliveries", "https://evil.example.com/": "/", "//evil.example.com/": "/", `/\evil.example.com`: "/", "": "/",
	} {
		got := r.ask(http.MethodPost, address+"/sign-in", "", form(admin, to))
		if got.status != http.StatusSeeOther || got.header.Get("Location") != want {
			t.Errorf("to %q: %d %s", to, got.status, got.header.Get("Location"))
		}
		cookie := got.header.Get("Set-Cookie")
		if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Lax") {
			t.Error("the cookie can be read by scripts or is sent to by other sites")
		}
		pair, _, _ := strings.Cut(cookie, ";")
		if got := r.ask(http.MethodGet, address+"/", "", "", "Cookie", pair); got.status != http.StatusOK ||
			!strings.Contains(got.text, "dashboard-admin") {
			t.Errorf("who has signed in: %d", got.status)
		}
	}
	if got := r.ask(http.MethodPost, address+"/sign-out", "", "x=y"); !strings.Contains(got.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Error("signing out leaves the cookie")
	}
}

func TestPagesAreShownInNoOtherSiteAndLoadNothingFromOne(t *testing.T) {
	r := newRig(t)
	address, admin := r.shared(), r.Account(t, "dashboard-admin", "cluster-admin")
	for _, path := range []string{"/", "/sign-in", "/nothing", "/assets/live.js"} {
		header := r.ask(http.MethodGet, address+path, admin, "").header
		policy := header.Get("Content-Security-Policy")
		for _, rule := range []string{
			"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'",
		} {
			if !strings.Contains(policy, rule) {
				t.Errorf("%s: the policy lacks %s: %s", path, rule, policy)
			}
		}
		if strings.Contains(policy, "unsafe") || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, header)
		}
	}
}

func TestWhoMayNotApproveCannot(t *testing.T) {
	r := newRig(t)
	ctx, workspace := context.Background(), r.workspace("asked")
	request := r.asking(workspace)
	edits := rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{requests}, Verbs: []string{"get", "list", "patch"},
	}
	approves := rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{requests}, Verbs: []string{"approve"}}
	address := r.shared()
	reader, approver := r.tenant("reader", workspace, reads(requests)), r.tenant("approver", workspace, edits, approves)
	path := address + "/requests/" + workspace + "/" + request.Name
	approve := url.Values{"decision": {"approve"}, "uid": {string(request.UID)}, "reason": {request.Status.Reason}}.Encode()

	if got := r.ask(http.MethodGet, address+"/registration", reader, ""); !strings.Contains(got.text, request.Name) ||
		!strings.Contains(got.text, `value="approve" disabled title="You need the right to patch and approve`) {
		t.Errorf("who may only read is offered to approve:\n%s", got.text)
	}
	if got := r.ask(http.MethodGet, address+"/registration", approver, ""); !strings.Contains(got.text, `value="approve">Approve`) {
		t.Errorf("who may approve is not offered to:\n%s", got.text)
	}
	for what, got := range map[string]answer{
		"403 who may only read": r.ask(http.MethodPost, path, reader, approve),
		"401 nobody":            r.ask(http.MethodPost, path, "", approve),
		"403 a page of another site": r.ask(http.MethodPost, path, approver, approve,
			"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example.com"),
		"403 one of an old browser":       r.ask(http.MethodPost, path, approver, approve, "Origin", "https://evil.example.com"),
		"400 another request of its name": r.ask(http.MethodPost, path, approver, "decision=approve&uid=another"),
		"400 one that waits for something else by now": r.ask(http.MethodPost, path, approver,
			"decision=approve&reason=HolderAlive&uid="+string(request.UID)),
		"400 another decision":       r.ask(http.MethodPost, path, approver, "decision=perhaps&uid="+string(request.UID)),
		"404 a request that is gone": r.ask(http.MethodPost, path+"x", approver, approve),
		"200 a link":                 r.ask(http.MethodGet, path+"?"+approve, approver, ""),
	} {
		if want, _, _ := strings.Cut(what, " "); want != strconv.Itoa(got.status) {
			t.Errorf("%s: %d", what, got.status)
		}
	}
	r.check(r.Get(ctx, client.ObjectKeyFromObject(request), request))
	if said := request.Annotations[fleet.AnnotationApproved]; said != "" {
		t.Fatalf("it was decided: %s", said)
	}
	if got := r.ask(http.MethodPost, path, approver, approve, "Sec-Fetch-Site", "same-origin"); got.status != http.StatusSeeOther {
		t.Errorf("the approver: %d %s", got.status, got.text)
	}
	r.check(r.Get(ctx, client.ObjectKeyFromObject(request), request))
	if said := request.Annotations[fleet.AnnotationApproved]; said != "true" {
		t.Errorf("it is approved: %q", said)
	}
}

func TestATokenIsMadeByWhoMayAndShownToWhoMay(t *testing.T) {
	r := newRig(t)
	ctx, workspace := context.Background(), r.workspace("tokens")
	r.cluster(workspace, "web", "", "", nil)
	all := func(verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{clusters, tokens}, Verbs: verbs}
	}
	address, reader, issuer := r.shared(), r.tenant("token-reader", workspace, all("get", "list")),
		r.tenant("token-issuer", workspace, all("get", "list", "create"))
	for token, offered := range map[string]bool{reader: false, issuer: true} {
		if got := r.ask(http.MethodGet, address+"/registration", token, ""); strings.Contains(got.text, "Create a token") != offered {
			t.Errorf("to make a token is offered: %t", !offered)
		}
	}
	form := func(name, ttl, most string) string {
		return url.Values{"namespace": {workspace}, "name": {name}, "ttl": {ttl}, "max": {most}}.Encode()
	}
	for what, got := range map[string]answer{
		"403 who may only read":     r.ask(http.MethodPost, address+"/tokens", reader, form("no", "1h", "1")),
		"403 a page of another":     r.ask(http.MethodPost, address+"/tokens", issuer, form("no", "1h", "1"), "Sec-Fetch-Site", "cross-site"),
		"400 no time":               r.ask(http.MethodPost, address+"/tokens", issuer, form("no", "for ever", "1")),
		"400 no number":             r.ask(http.MethodPost, address+"/tokens", issuer, form("no", "1h", "none")),
		"400 no labels":             r.ask(http.MethodPost, address+"/tokens", issuer, form("no", "1h", "1")+"&labels=env"),
		"400 no name":               r.ask(http.MethodPost, address+"/tokens", issuer, form("", "1h", "1")),
		"400 a name that cannot be": r.ask(http.MethodPost, address+"/tokens", issuer, form("Not/This", "1h", "1")),
		"303 who may":               r.ask(http.MethodPost, address+"/tokens", issuer, form("yes", "1h", "2")),
	} {
		if want, _, _ := strings.Cut(what, " "); want != strconv.Itoa(got.status) {
			t.Errorf("%s: %d %s", what, got.status, got.text)
		}
	}
	if got := r.ask(http.MethodPost, address+"/tokens", issuer, form("yes", "1h", "2")); got.status != http.StatusConflict {
		t.Errorf("once more: %d", got.status)
	}
	made := &fleet.ClusterRegistrationToken{}
	r.check(r.Get(ctx, client.ObjectKey{Namespace: workspace, Name: "yes"}, made))
	r.check(r.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "yes"}, Data: map[string][]byte{"values": []byte("token: the-secret-itself\n")},
	}))
	made.Status.SecretName = "yes"
	r.check(r.Status().Update(ctx, made))
	for token, shown := range map[string]bool{issuer: false, r.Account(t, "dashboard-admin", "cluster-admin"): true} {
		got := r.ask(http.MethodGet, address+"/tokens/tokens/yes", token, "")
		if strings.Contains(got.text, "the-secret-itself") != shown || got.status != http.StatusOK ||
			!shown && !strings.Contains(got.text, "cannot get resource") {
			t.Errorf("the line is shown: %t: %d", !shown, got.status)
		}
	}
}

func TestTheChartsRightsSufficeAndArePassedOnToNobody(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("charted")
	r.cluster(workspace, "web", "", "", nil)
	r.workspace(naming.SystemNamespace)
	r.InstallTemplate(t, "fleet/templates/dashboard-rbac.yaml")
	stranger := r.Account(t, "without-rights", "")
	r.Config = rest.CopyConfig(r.Config)
	r.Config.Impersonate.UserName = "system:serviceaccount:" + naming.SystemNamespace + ":fleet-dashboard"
	address := r.shared() // which waits until it has read all kinds
	if got := r.ask(http.MethodGet, address+"/", stranger, ""); got.status != http.StatusOK || strings.Contains(got.text, "charted") {
		t.Errorf("who has no rights: %d\n%s", got.status, got.text)
	}
	if got := r.ask(http.MethodGet, address+"/members/charted/web", stranger, ""); got.status != http.StatusForbidden {
		t.Errorf("who has no rights: %d", got.status)
	}
	if got := r.ask(http.MethodGet, address+"/", r.Account(t, "dashboard-admin", "cluster-admin"),
		""); !strings.Contains(got.text, "charted/web") {
		t.Errorf("an admin: %d\n%s", got.status, got.text)
	}
}

// TestTheDashboardsAccountOnlyListsTheFleet has the dashboard's own account try what a thief of its
// token would.
func TestTheDashboardsAccountOnlyListsTheFleet(t *testing.T) {
	r := newRig(t)
	workspace := r.workspace("unlisted")
	run, request := r.staged(workspace, "shop-v2")
	r.workspace(naming.SystemNamespace)
	r.InstallTemplate(t, "fleet/templates/dashboard-rbac.yaml")
	config := rest.CopyConfig(r.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + naming.SystemNamespace + ":fleet-dashboard"
	account, err := client.New(config, client.Options{Scheme: scheme})
	r.check(err)
	ctx := t.Context()
	all := &placement.StagedUpdateRunList{}
	testkube.Eventually(t, "the account has its rights", func() error { return account.List(ctx, all) })
	if !slices.ContainsFunc(all.Items, func(o placement.StagedUpdateRun) bool { return o.UID == run.UID }) {
		t.Errorf("the run is not listed: %d others", len(all.Items))
	}
	merge := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"state":"Stop"},"status":null}`))
	another := &placement.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "x"}}
	deny := map[string]error{
		"read one run":             account.Get(ctx, client.ObjectKeyFromObject(run), &placement.StagedUpdateRun{}),
		"stop a run":               account.Patch(ctx, run.DeepCopy(), merge),
		"write the status of one":  account.Status().Patch(ctx, run.DeepCopy(), merge),
		"delete a run":             account.Delete(ctx, run.DeepCopy()),
		"create a run":             account.Create(ctx, another),
		"list approval requests":   account.List(ctx, &placement.ApprovalRequestList{}),
		"approve a stage":          account.Status().Patch(ctx, request.DeepCopy(), merge),
		"list strategies":          account.List(ctx, &placement.StagedUpdateStrategyList{}),
		"list what members got":    account.List(ctx, &placement.WorkList{}),
		"list the fleet's Secrets": account.List(ctx, &corev1.SecretList{}),
	}
	for what, err := range deny {
		if !apierrors.IsForbidden(err) {
			t.Errorf("the account may %s: %v", what, err)
		}
	}
}
