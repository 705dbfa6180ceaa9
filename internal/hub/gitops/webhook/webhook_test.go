package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
)

const (
	commit   = "1111111111111111111111111111111111111111"
	password = "hunter2"
)

func sign(body string) string {
	mac := hmac.New(sha256.New, []byte(password))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// call is a push to the branch main of the repository org/shop.
type call struct {
	header map[string]string
	body   string
	// key is the key of the Secret with the password.
	key string
}

// calls are the pushes of each forge, with a valid signature.
func calls() map[string]call {
	github := `{"ref":"refs/heads/main","after":"` + commit + `","repository":{"clone_url":"https://forge.example.com/org/shop.git",` +
		`"ssh_url":"git@forge.example.com:org/shop.git","html_url":"https://forge.example.com/org/shop"}}`
	gitlab := `{"ref":"refs/heads/main","after":"` + commit + `","checkout_sha":"` + commit + `","project":{` +
		`"git_http_url":"https://forge.example.com/org/shop.git","git_ssh_url":"git@forge.example.com:org/shop.git"}}`
	cloud := `{"push":{"changes":[{"new":null},{"new":{"type":"branch","name":"main","target":{"hash":"` + commit + `"}}}]},` +
		`"repository":{"links":{"html":{"href":"https://forge.example.com/org/shop"}}}}`
	server := `{"changes":[{"ref":{"id":"refs/heads/main"},"toHash":"` + commit + `"}],"repository":{"links":{"clone":[` +
		`{"href":"https://forge.example.com/org/shop.git"},{"href":"ssh://git@forge.example.com:7999/org/shop.git"}]}}}`
	azure := `{"eventType":"git.push","resource":{"refUpdates":[{"name":"refs/heads/main","newObjectId":"` + commit + `"}],` +
		`"repository":{"remoteUrl":"https://forge.example.com/org/shop"}}}`
	return map[string]call{
		"GitHub": {map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + sign(github)}, github, "github"},
		"Gitea": {map[string]string{"X-Gitea-Event": "push", "X-GitHub-Event": "push", "X-Gogs-Event": "push",
			"X-Gitea-Signature": sign(github)}, github, "gitea"},
		"Gogs":      {map[string]string{"X-Gogs-Event": "push", "X-Gogs-Signature": sign(github)}, github, "gogs"},
		"GitLab":    {map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": password}, gitlab, "gitlab"},
		"Bitbucket": {map[string]string{"X-Hook-UUID": password, "X-Event-Key": "repo:push"}, cloud, "bitbucket"},
		"Bitbucket with a signature": {map[string]string{"X-Hook-UUID": "any", "X-Event-Key": "repo:push",
			"X-Hub-Signature": "sha256=" + sign(cloud)}, cloud, "bitbucket"},
		"Bitbucket Server": {map[string]string{"X-Event-Key": "repo:refs_changed", "X-Hub-Signature": "sha256=" + sign(server)}, server,
			"bitbucket-server"},
		"Azure DevOps": {map[string]string{"X-Vss-ActivityId": "a", "Authorization": "Basic bWU6aHVudGVyMg=="}, azure, "azure-password"},
	}
}

// handlerOf returns a handler with GitRepos and Secrets.
func handlerOf(t *testing.T, c clock.PassiveClock, objects ...client.Object) *Handler {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	built := indexed{fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&fleet.GitRepo{})}
	if err := Index(t.Context(), built); err != nil {
		t.Fatal(err)
	}
	stored := built.Build()
	return New(Handler{Client: stored, Live: stored, Clock: c, Log: logr.Discard(), SystemNamespace: "system"})
}

// indexed adds indexes to a fake client.
type indexed struct{ *fake.ClientBuilder }

func (i indexed) IndexField(_ context.Context, _ client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(anyform.Object("GitRepo"), field, extract)
	return nil
}

func repo(namespace, name string, spec fleet.GitRepoSpec) *fleet.GitRepo {
	return &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}, Spec: spec}
}

func secret(namespace, name, key string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data: map[string][]byte{key: []byte(password), "azure-username": []byte("me")}}
}

// send sends a call, and returns the answer.
func (c call) send(h *Handler) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	for name, value := range c.header {
		request.Header.Set(name, value)
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	return answer
}

// announced returns the announced commit of a GitRepo.
func announced(t *testing.T, h *Handler, namespace, name string) string {
	t.Helper()
	after := &fleet.GitRepo{}
	if err := h.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, after); err != nil {
		t.Fatal(err)
	}
	if (after.Status.WebhookCommit == "") != (after.Status.LastWebhookTime == nil) {
		t.Errorf("%+v", after.Status)
	}
	return after.Status.WebhookCommit
}

func TestThePushesOfAllForges(t *testing.T) {
	for name, c := range calls() {
		main := fleet.GitRepoSpec{Repo: "https://forge.example.com/org/shop", Branch: "main"}
		h := handlerOf(t, clock.RealClock{}, repo("clusters", "shop", main), secret("system", Secret, c.key))
		if answer := c.send(h); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "1 GitRepos follow") {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
		}
		if got := announced(t, h, "clusters", "shop"); got != commit {
			t.Errorf("%s: %q", name, got)
		}
		// Another password, another key, none, and no Secret.
		other := secret("system", Secret, c.key)
		other.Data[c.key] = []byte("other")
		for what, present := range map[string]*corev1.Secret{
			"another password": other, "another key": secret("system", Secret, "other"), "another Secret": secret("system", "other", c.key),
		} {
			h := handlerOf(t, clock.RealClock{}, repo("clusters", "shop", main), present)
			if answer := c.send(h); answer.Code != http.StatusUnauthorized || announced(t, h, "clusters", "shop") != "" {
				t.Errorf("%s, %s: %d %s", name, what, answer.Code, answer.Body)
			}
		}
		bare := call{map[string]string{}, c.body, c.key}
		for header, value := range c.header {
			if !strings.Contains(header, "Signature") && header != "X-Gitlab-Token" && header != "Authorization" {
				bare.header[header] = value
			}
		}
		if name == "Bitbucket" {
			bare.header["X-Hook-UUID"] = "other"
		}
		empty := secret("system", Secret, c.key)
		empty.Data = map[string][]byte{c.key: {}, "azure-username": {}}
		for what, present := range map[string]*corev1.Secret{"no signature": secret("system", Secret, c.key), "an empty password": empty} {
			h := handlerOf(t, clock.RealClock{}, repo("clusters", "shop", main), present)
			if answer := bare.send(h); answer.Code != http.StatusUnauthorized || announced(t, h, "clusters", "shop") != "" {
				t.Errorf("%s, %s: %d %s", name, what, answer.Code, answer.Body)
			}
		}
	}
}

func TestAPushWakesItsGitReposOnly(t *testing.T) {
	const address = "https://forge.example.com/org/shop"
	leaving := repo("clusters", "leaving", fleet.GitRepoSpec{Repo: address, Branch: "main"})
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Now()}, []string{"other/finalizer"}
	own := secret("tenant", "own", "github")
	h := handlerOf(t, clock.RealClock{}, secret("system", Secret, "github"), own, leaving,
		repo("clusters", "https", fleet.GitRepoSpec{Repo: address + ".git", Branch: "main"}),
		repo("clusters", "ssh", fleet.GitRepoSpec{Repo: "git@FORGE.example.com:org/shop.git", Branch: "main"}),
		repo("clusters", "port", fleet.GitRepoSpec{Repo: "ssh://git@forge.example.com:2222/org/shop", Branch: "main"}),
		repo("clusters", "master", fleet.GitRepoSpec{Repo: address}),
		repo("clusters", "tag", fleet.GitRepoSpec{Repo: address, Branch: "main", Revision: "v1"}),
		repo("clusters", "pinned", fleet.GitRepoSpec{Repo: address, Branch: "main", Revision: commit}),
		repo("clusters", "other", fleet.GitRepoSpec{Repo: address + "-two", Branch: "main"}),
		repo("clusters", "elsewhere", fleet.GitRepoSpec{Repo: "https://forge.example.org/org/shop", Branch: "main"}),
		repo("tenant", "own", fleet.GitRepoSpec{Repo: address, Branch: "main", WebhookSecret: "own"}),
		repo("tenant", "missing", fleet.GitRepoSpec{Repo: address, Branch: "main", WebhookSecret: "missing"}))
	answer := calls()["GitHub"].send(h)
	if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "4 GitRepos follow") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	for name, want := range map[string]bool{
		"clusters/https": true, "clusters/ssh": true, "clusters/port": true, "tenant/own": true, "clusters/leaving": false,
		"clusters/master": false, "clusters/tag": false, "clusters/pinned": false, "clusters/other": false, "clusters/elsewhere": false,
		"tenant/missing": false,
	} {
		namespace, name, _ := strings.Cut(name, "/")
		if got := announced(t, h, namespace, name); (got == commit) != want {
			t.Errorf("%s/%s: %q", namespace, name, got)
		}
	}
	tag := call{body: strings.Replace(calls()["GitHub"].body, "refs/heads/main", "refs/tags/v1", 1)}
	tag.header = map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + sign(tag.body)}
	if tag.send(h); announced(t, h, "clusters", "tag") != commit {
		t.Error("the tag was not announced")
	}
	for what, other := range map[string]string{"a deletion": deleted, "no commit": "../../x"} {
		c := call{body: strings.Replace(calls()["GitHub"].body, commit, other, 1)}
		c.header = map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + sign(c.body)}
		if answer := c.send(h); !strings.Contains(answer.Body.String(), "0 GitRepos follow") {
			t.Errorf("%s: %s", what, answer.Body)
		}
	}
}

func TestATenantsSecretWakesNoGitReposOfOthers(t *testing.T) {
	spec := fleet.GitRepoSpec{Repo: "https://forge.example.com/org/shop", Branch: "main"}
	of := spec
	of.WebhookSecret = "own"
	h := handlerOf(t, clock.RealClock{}, secret("tenant", "own", "github"), repo("tenant", "own", of), repo("clusters", "shop", spec))
	if answer := calls()["GitHub"].send(h); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), "1 GitRepos") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
	if announced(t, h, "clusters", "shop") != "" {
		t.Error("the GitRepo of another workspace was woken")
	}
}

func TestRequestsThatAreNoPush(t *testing.T) {
	good := calls()["GitHub"]
	ping := map[string]string{"X-GitHub-Event": "ping"}
	for name, row := range map[string]struct {
		method, kind string
		call         call
		want         int
	}{
		"a GET":          {http.MethodGet, "application/json", good, http.StatusMethodNotAllowed},
		"a form":         {http.MethodPost, "application/x-www-form-urlencoded", good, http.StatusUnsupportedMediaType},
		"an unknown one": {http.MethodPost, "application/json", call{body: good.body}, http.StatusBadRequest},
		"a ping":         {http.MethodPost, "application/json", call{header: ping, body: "{}"}, http.StatusOK},
		"no JSON":        {http.MethodPost, "application/json", call{header: good.header, body: "text"}, http.StatusBadRequest},
		"a large one": {http.MethodPost, "application/json", call{header: good.header, body: strings.Repeat(" ", maxBody+1)},
			http.StatusRequestEntityTooLarge},
		"another repository": {http.MethodPost, "application/json", call{header: good.header, body: "{}"}, http.StatusUnauthorized},
	} {
		h := handlerOf(t, clock.RealClock{}, secret("system", Secret, "github"))
		request := httptest.NewRequest(row.method, "/", strings.NewReader(row.call.body))
		request.Header.Set("Content-Type", row.kind)
		for header, value := range row.call.header {
			request.Header.Set(header, value)
		}
		answer := httptest.NewRecorder()
		if h.ServeHTTP(answer, request); answer.Code != row.want {
			t.Errorf("%s: %d %s", name, answer.Code, answer.Body)
		}
	}
	h := handlerOf(t, testclock.NewFakePassiveClock(time.Now()), secret("system", Secret, "github"))
	for i := range burst + 1 {
		if answer := good.send(h); (answer.Code == http.StatusTooManyRequests) != (i == burst) {
			t.Fatalf("request %d: %d", i, answer.Code)
		}
	}
}

func TestTheKeyOfARepository(t *testing.T) {
	for address, want := range map[string]string{
		"https://forge.example.com/org/shop.git":    "forge.example.com/org/shop",
		"git@forge.example.com:Org/Shop.git":        "forge.example.com/org/shop",
		"ssh://git@forge.example.com:7999/org/shop": "forge.example.com/org/shop",
		"https://forge.example.com:8443/org/shop/":  "forge.example.com/org/shop",
		"git@ssh.dev.azure.com:v3/org/project/shop": "dev.azure.com/org/project/_git/shop", "file:///etc": "", "": "",
		"https://org@dev.azure.com/org/project/_git/shop": "dev.azure.com/org/project/_git/shop",
	} {
		if got := keyOf(address); got != want {
			t.Errorf("%q: %q", address, got)
		}
	}
	if fmt.Sprint(refOf("refs/heads/a/b", "c")) != "{a/b  c}" || fmt.Sprint(refOf("refs/tags/v1", "c")) != "{ v1 c}" {
		t.Error("a name of a branch or tag is read wrong")
	}
}
