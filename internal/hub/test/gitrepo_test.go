package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/gitops"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testgit"
)

// gitOps starts the program that reads repositories, once, with the rights of its account. It takes
// webhooks at an address.
var (
	gitOps         sync.Once
	webhookAddress string
)

// gitOpsConfig acts as the account of the program that reads repositories.
func (f fixture) gitOpsConfig() *rest.Config {
	config := rest.CopyConfig(f.cluster.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + naming.SystemNamespace + ":" + naming.GitOpsAccount
	return config
}

// withGitOps is newFixture with that program.
func withGitOps(t *testing.T) fixture {
	t.Helper()
	f := newFixture(t)
	gitOps.Do(func() {
		webhookAddress = testgit.FreeAddress(f.t)
		ctx := logr.NewContext(context.Background(), logger)
		config := f.gitOpsConfig()
		go func() {
			if err := gitops.Run(ctx, config, gitops.Options{Namespace: naming.SystemNamespace, MetricsAddress: "0", ProbeAddress: "0",
				WebhookAddress: webhookAddress, AllowLoopback: true}); err != nil {
				panic(fmt.Sprintf("the program that reads repositories ended: %v ", err))
			}
		}()
	})
	return f
}

// gitRepo creates a GitRepo for all Clusters, which looks each second.
func (f fixture) gitRepo(name, address string, ca []byte, edit ...func(*fleet.GitRepoSpec)) *fleet.GitRepo {
	f.t.Helper()
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}, Spec: fleet.GitRepoSpec{
		Repo: address, Branch: "main", CABundle: ca, PollingInterval: &metav1.Duration{Duration: time.Second},
		Targets: []fleet.GitTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}},
	}}
	for _, one := range edit {
		one(&repo.Spec)
	}
	f.check(f.Create(context.Background(), repo))
	return repo
}

// gitRepoSays waits until a condition of a GitRepo has a reason, and returns the GitRepo.
func (f fixture) gitRepoSays(name, condition, reason string, parts ...string) *fleet.GitRepo {
	f.t.Helper()
	repo := &fleet.GitRepo{}
	f.eventually(fmt.Sprintf("%s of %s is %s", condition, name, reason), func() error {
		if err := f.get(repo, f.workspace, name); err != nil {
			return err
		}
		is := kube.FindCondition(repo.Status.Conditions, condition)
		if is == nil || is.Reason != reason || slices.ContainsFunc(parts,
			func(part string) bool { return !strings.Contains(is.Message, part) }) {
			return fmt.Errorf("the status is %+v", repo.Status)
		}
		return nil
	})
	return repo
}

// atCommit waits until a GitRepo has a commit.
func (f fixture) atCommit(name, commit string) *fleet.GitRepo {
	f.t.Helper()
	repo := &fleet.GitRepo{}
	f.eventually(name+" is at commit "+commit, func() error {
		if err := f.get(repo, f.workspace, name); err != nil {
			return err
		}
		if repo.Status.Commit != commit {
			return fmt.Errorf("the status is %+v", repo.Status)
		}
		return nil
	})
	return repo
}

// bundlesOf returns the Bundles of a GitRepo by name.
func (f fixture) bundlesOf(name string) map[string]fleet.Bundle {
	f.t.Helper()
	var list fleet.BundleList
	f.check(f.List(context.Background(), &list, client.InNamespace(f.workspace), client.MatchingLabels{fleet.LabelRepoName: name}))
	found := map[string]fleet.Bundle{}
	for _, bundle := range list.Items {
		found[bundle.Name] = bundle
	}
	return found
}

func gitConfigMap(text string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {text: " + text + "}\n"
}

func TestAGitRepoFollowsItsBranch(t *testing.T) {
	f := withGitOps(t)
	p := f.place("c1", nil)
	source := testgit.New(t, "shop.git")
	source.Write(map[string]string{"web/fleet.yaml": "defaultNamespace: shop\n", "web/a.yaml": gitConfigMap("one"),
		"db/fleet.yaml": "{}", "db/b.yaml": gitConfigMap("two")})
	first := source.Push("main")
	_, address, ca := source.Web("", "")
	f.gitRepo("shop", address, ca)
	f.atCommit("shop", first)
	web := f.bundlesOf("shop")["shop-web"]
	if all := f.bundlesOf("shop"); len(all) != 2 || web.Labels[fleet.LabelCommit] != first || web.Spec.DefaultNamespace != "shop" {
		t.Fatalf("%d Bundles: %+v", len(all), web)
	}
	p.deployment("shop-web", there)
	p.deployment("shop-db", there)
	f.gitRepoSays("shop", "Ready", "BundlesNotReady", "shop-web: ")
	f.gitRepoSays("shop", "GitPolling", "Polled")
	f.gitRepoSays("shop", "Accepted", "Accepted")

	// A broken file deletes nothing and does not hinder the other directory.
	source.Write(map[string]string{"db/b.yaml": "", "db/fleet.yaml": "", "web/fleet.yaml": "defaultNamespaces: shop\n"})
	source.Push("main")
	broken := f.gitRepoSays("shop", "Ready", "CommitUnreadable",
		"web/fleet.yaml:1: unknown key defaultNamespaces; did you mean defaultNamespace?")
	if all := f.bundlesOf("shop"); broken.Status.Commit != first || len(all) != 2 {
		t.Errorf("commit %s, %d Bundles", broken.Status.Commit, len(all))
	}

	// A directory that has left takes its Bundle along, once the commit is whole.
	source.Write(map[string]string{"web/fleet.yaml": "defaultNamespace: store\n"})
	third := source.Push("main")
	f.atCommit("shop", third)
	f.eventually("Bundle shop-db is gone", func() error { return gone(f.get(&fleet.Bundle{}, f.workspace, "shop-db")) })
	p.missing("shop-db")
	if now := f.bundlesOf("shop")["shop-web"]; now.UID != web.UID || now.Spec.DefaultNamespace != "store" ||
		now.Labels[fleet.LabelCommit] != third {
		t.Errorf("%+v", now)
	}

	// What another writes into a Bundle is written back, and a deleted one is made again.
	f.check(f.get(&web, f.workspace, "shop-web"))
	f.change(&web, func() { web.Spec.DefaultNamespace = "other" })
	f.eventually("the spec is written back", func() error {
		if now := f.bundlesOf("shop")["shop-web"]; now.Spec.DefaultNamespace != "store" {
			return fmt.Errorf("it is %s", now.Spec.DefaultNamespace)
		}
		return nil
	})
	f.check(f.Delete(context.Background(), &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "shop-web"}}))
	f.eventually("the Bundle is made again", func() error {
		if now := f.bundlesOf("shop")["shop-web"]; now.UID == web.UID || now.UID == "" {
			return fmt.Errorf("it is %+v", now.ObjectMeta)
		}
		return nil
	})

	// A repository that is away changes nothing.
	f.check(f.Delete(context.Background(), &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "shop"}}))
	f.eventually("the Bundles are gone", func() error {
		if left := f.bundlesOf("shop"); len(left) > 0 {
			return fmt.Errorf("%d are left", len(left))
		}
		return nil
	})
}

func TestARepositoryThatIsAwayChangesNothing(t *testing.T) {
	f := withGitOps(t)
	source := testgit.New(t, "shop.git")
	source.Write(map[string]string{"a.yaml": gitConfigMap("one")})
	commit := source.Push("main")
	server, address, ca := source.Web("", "")
	f.gitRepo("shop", address, ca)
	f.atCommit("shop", commit)
	server.Close()
	f.gitRepoSays("shop", "GitPolling", "RepositoryUnreachable", "checks have failed since 2", "connection refused",
		"deployed objects stay at commit "+commit)
	f.gitRepoSays("shop", "Ready", "RepositoryUnreachable")
	if all := f.bundlesOf("shop"); len(all) != 1 {
		t.Errorf("%d Bundles", len(all))
	}
	for name, address := range map[string]string{"none": strings.Replace(address, "https", "ftp", 1), "empty": ""} {
		f.gitRepo(name, address, ca)
		f.gitRepoSays(name, "Accepted", "GitRepoInvalid", "spec.repo")
	}
}

func TestAPrivateRepositoryIsReadWithTheSecretThatItsGitRepoNames(t *testing.T) {
	f := withGitOps(t)
	ctx := context.Background()
	source := testgit.New(t, "shop.git")
	source.Write(map[string]string{"a.yaml": gitConfigMap("one")})
	commit := source.Push("main")
	_, address, ca := source.Web("me", "hunter2")
	repo := f.gitRepo("shop", address, ca, func(spec *fleet.GitRepoSpec) { spec.ClientSecretName = "git" })
	f.gitRepoSays("shop", "Accepted", "GitCredentialsUnusable", "which does not exist: create it")
	secret := func(name string, kind corev1.SecretType, password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}, Type: kind,
			StringData: map[string]string{"username": "me", "password": password}}
	}
	f.check(f.Create(ctx, secret("git", corev1.SecretTypeOpaque, "hunter2")))
	f.gitRepoSays("shop", "Accepted", "GitCredentialsUnusable", "secret git is of type Opaque")
	f.check(f.Delete(ctx, secret("git", corev1.SecretTypeOpaque, "")))
	f.check(f.Create(ctx, secret("git", corev1.SecretTypeBasicAuth, "hunter2")))
	f.atCommit("shop", commit)

	// Its account reads no other Secret, and this one no longer once the GitRepo is gone.
	f.check(f.Create(ctx, secret("other", corev1.SecretTypeBasicAuth, "x")))
	account, err := client.New(f.gitOpsConfig(), client.Options{Scheme: f.Scheme()})
	f.check(err)
	read := func(name string) error {
		return account.Get(ctx, client.ObjectKey{Namespace: f.workspace, Name: name}, &corev1.Secret{})
	}
	if err := read("git"); err != nil {
		t.Errorf("the Secret of the GitRepo: %v", err)
	}
	if err := read("other"); !apierrors.IsForbidden(err) {
		t.Errorf("another Secret: %v", err)
	}
	if err := account.List(ctx, &corev1.SecretList{}, client.InNamespace(f.workspace)); !apierrors.IsForbidden(err) {
		t.Errorf("all Secrets: %v", err)
	}
	f.check(f.Delete(ctx, repo))
	f.eventually("the right is gone", func() error {
		if err := read("git"); !apierrors.IsForbidden(err) {
			return fmt.Errorf("reading gives %v", err)
		}
		return gone(f.get(&rbacv1.Role{}, f.workspace, naming.GitOpsAccount))
	})
}

func TestPoliciesAndRestrictionsConfineGitRepos(t *testing.T) {
	f := withGitOps(t)
	ctx := context.Background()
	source := testgit.New(t, "shop.git")
	source.Write(map[string]string{"a/fleet.yaml": "serviceAccount: admin\n", "a/b.yaml": gitConfigMap("one"),
		"c/d.yaml": gitConfigMap("two")})
	source.Push("main")
	_, address, ca := source.Web("", "")
	restriction := &fleet.GitRepoRestriction{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "tenant"},
		AllowedServiceAccounts: []string{"tenant"}, AllowedRepoPatterns: []string{"^https://127"}}
	f.check(f.Create(ctx, restriction))
	f.gitRepo("shop", address, ca)
	f.gitRepoSays("shop", "Ready", "PolicyViolation", "Bundle shop-a: ",
		`"admin", which GitRepoRestriction tenant of its namespace does not allow`)
	if all := f.bundlesOf("shop"); len(all) != 1 || all["shop"].Name == "" {
		t.Errorf("%d Bundles: %v", len(all), all)
	}
	f.gitRepo("account", address, ca, func(spec *fleet.GitRepoSpec) { spec.ServiceAccount = "admin" })
	f.gitRepoSays("account", "Accepted", "PolicyViolation", `spec.serviceAccount is "admin", which GitRepoRestriction tenant`)
	f.gitRepo("ssh", "git@127.0.0.1:shop.git", nil)
	f.gitRepoSays("ssh", "Accepted", "PolicyViolation", "spec.repo is ", "which no pattern of GitRepoRestriction tenant")

	policy := &fleet.Policy{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "forges"}}
	policy.GitRepo = &fleet.GitRepoRules{AllowedRepoPatterns: []string{"https://forge.example.com/.*"}}
	f.check(f.Create(ctx, policy))
	f.gitRepoSays("shop", "Accepted", "PolicyViolation", "which no pattern of Policy forges")
	if all := f.bundlesOf("shop"); len(all) != 1 {
		t.Errorf("%d Bundles are left", len(all))
	}
}

func TestAGitRepoTakesOverItsOwnBundlesAndNoOthers(t *testing.T) {
	f := withGitOps(t)
	ctx := context.Background()
	theirs := f.bundle("shop-a", configMap+"targets: [{clusterName: none}]\n")
	former := f.bundle("shop-b", configMap+"targets: [{clusterName: none}]\n")
	f.change(former, func() { former.Labels = map[string]string{fleet.LabelRepoName: "shop", "kept": "yes"} })
	source := testgit.New(t, "shop.git")
	source.Write(map[string]string{"a/fleet.yaml": "{}", "a/c.yaml": gitConfigMap("one"), "b/fleet.yaml": "labels: {app: b}",
		"b/d.yaml": gitConfigMap("two")})
	source.Push("main")
	_, address, ca := source.Web("", "")
	f.gitRepo("shop", address, ca)
	f.gitRepoSays("shop", "Ready", "BundleNameTaken", "Bundle shop-a exists and is not of this GitRepo")
	var now fleet.Bundle
	f.check(f.get(&now, f.workspace, "shop-a"))
	if now.UID != theirs.UID || now.Generation != theirs.Generation || len(now.OwnerReferences) > 0 {
		t.Errorf("the other's Bundle was changed: %+v", now.ObjectMeta)
	}
	f.eventually("Bundle shop-b is taken over", func() error {
		if err := f.get(&now, f.workspace, "shop-b"); err != nil {
			return err
		}
		if now.UID != former.UID || len(now.OwnerReferences) != 1 || now.Labels["kept"] != "yes" || now.Labels["app"] != "b" ||
			now.Spec.Resources[0].Name != "d.yaml" {
			return fmt.Errorf("%+v", now)
		}
		return nil
	})
	f.check(f.Delete(ctx, theirs))
	f.eventually("the Bundle is made", func() error {
		if made := f.bundlesOf("shop")["shop-a"]; len(made.OwnerReferences) != 1 {
			return fmt.Errorf("%+v", made.ObjectMeta)
		}
		return nil
	})
	repo := f.gitRepoSays("shop", "Ready", "NoTarget", "deployed nowhere: shop-a: its targets match no Cluster")
	f.change(repo, func() { repo.Spec.Targets = []fleet.GitTarget{{ClusterGroup: "none"}} })
	f.gitRepoSays("shop", "Ready", "NoTarget", "its targets match no Cluster; there is no ClusterGroup none; and 1 more")
}

func TestAGitRepoThatIsDeletedNamesTheFinalizersOfOthers(t *testing.T) {
	f := withGitOps(t)
	ctx := context.Background()
	repo := f.gitRepo("shop", "https://127.0.0.1:1/shop", nil)
	f.change(repo, func() { repo.Finalizers = []string{"fleet.cattle.io/gitrepo-finalizer"} })
	f.check(f.Delete(ctx, repo))
	f.gitRepoSays("shop", "Ready", "Leaving", "(fleet.cattle.io/gitrepo-finalizer)")
	f.change(repo, func() { repo.Finalizers = nil })
	f.eventually("it is gone", func() error { return gone(f.get(&fleet.GitRepo{}, f.workspace, "shop")) })
}

// TestAPushIsDeliveredAtOnce has GitRepos without polling, and a forge with a webhook.
func TestAPushIsDeliveredAtOnce(t *testing.T) {
	f := withGitOps(t)
	source := testgit.New(t, "shop.git")
	source.Write(map[string]string{"a.yaml": gitConfigMap("one")})
	first := source.Push("main")
	_, address, ca := source.Web("", "")
	f.check(f.Create(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "hook"},
		StringData: map[string]string{"gitlab": "hunter2"}}))
	f.gitRepo("shop", address, ca, func(spec *fleet.GitRepoSpec) { spec.DisablePolling, spec.WebhookSecret = true, "hook" })
	f.gitRepo("other", address, ca, func(spec *fleet.GitRepoSpec) { spec.DisablePolling = true })
	f.atCommit("shop", first)
	f.atCommit("other", first)
	source.Write(map[string]string{"a.yaml": gitConfigMap("two")})
	second := source.Push("main")
	if err := testgit.Announce(webhookAddress, "guessed", second, address); err == nil || err.Error() != "401 Unauthorized" {
		t.Errorf("a push with another secret: %v", err)
	}
	if repo := f.atCommit("shop", first); repo.Status.WebhookCommit != "" {
		t.Errorf("it was announced: %+v", repo.Status)
	}
	f.check(testgit.Announce(webhookAddress, "hunter2", second, address))
	if repo := f.atCommit("shop", second); repo.Status.WebhookCommit != second || repo.Status.LastWebhookTime == nil {
		t.Errorf("%+v", repo.Status)
	}
	if repo := f.atCommit("other", first); repo.Status.WebhookCommit != "" {
		t.Errorf("the other was announced: %+v", repo.Status)
	}
}

// TestAHubWithoutTheProgramSaysSo also finds that no right on Secrets is given.
func TestAHubWithoutTheProgramSaysSo(t *testing.T) {
	f := newAlone(t, "", "--without-gitops")
	f.gitRepo("shop", "https://git.example.com/shop", nil)
	f.gitRepoSays("shop", fleet.ConditionSupported, "KindNotImplemented", "gitops.enabled of the chart fleet is false")
	f.helmOp("web", fleet.HelmOptions{Repo: "https://charts.example.com", Chart: "web"})
	f.helmOpSays("web", fleet.ConditionSupported, "KindNotImplemented", "gitops.enabled of the chart fleet is false")
	if err := gone(f.get(&rbacv1.Role{}, f.workspace, naming.GitOpsAccount)); err != nil {
		t.Errorf("a Role was made: %v", err)
	}
}

// TestWhatIsWrongWithARepositoryIsSaid reads broken repositories, and one with a branch that was
// replaced.
func TestWhatIsWrongWithARepositoryIsSaid(t *testing.T) {
	f := withGitOps(t)
	source, other := testgit.New(t, "shop.git"), testgit.New(t, "other.git")
	source.Write(map[string]string{"web/a.yaml": gitConfigMap("one")})
	first := source.Push("main")
	_, address, ca := source.Web("", "")
	source.Write(map[string]string{"web/fleet.yaml": "defaultNamespace: a\n---\ndefaultNamespace: b\n"})
	source.Push("documents")
	f.gitRepo("shop", address, ca, func(spec *fleet.GitRepoSpec) { spec.Paths = []string{"web"} })
	f.gitRepo("gone", address, ca, func(spec *fleet.GitRepoSpec) { spec.Revision = strings.Repeat("0123456789", 4) })
	f.gitRepo("documents", address, ca, func(spec *fleet.GitRepoSpec) { spec.Branch = "documents" })
	f.atCommit("shop", first)
	f.gitRepo("shop-web", address, ca)
	f.gitRepoSays("gone", "Ready", "CommitUnreadable", "the repository has no commit 0123456789", "correct spec.revision",
		"no commit is deployed yet")
	f.gitRepoSays("documents", "Ready", "CommitUnreadable", "web/fleet.yaml:2: a second document begins")
	f.gitRepoSays("shop-web", "Ready", "BundleNameTaken", "Bundle shop-web exists and is not of this GitRepo, but of GitRepo shop: give")

	// The commits of a branch that was replaced are gone.
	before := f.bundlesOf("shop")["shop-web"]
	other.Write(map[string]string{"web/a.yaml": gitConfigMap("two")})
	second := other.Push("main")
	source.Take(other, "main")
	f.atCommit("shop", second)
	if after := f.bundlesOf("shop")["shop-web"]; after.UID != before.UID || after.Labels[fleet.LabelCommit] != second {
		t.Errorf("the Bundle is %+v", after.ObjectMeta)
	}
}
