package hub_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testgit"
	"github.com/muster-fleet/muster/internal/testkube"
)

// TestAReaderThatIsKilledLosesNoCommit runs two replicas of the program, and kills the one at work
// when a commit has been announced to the other. Then it kills the other in the midst of a clone.
func TestAReaderThatIsKilledLosesNoCommit(t *testing.T) {
	f := newAlone(t, "")
	source := testgit.New(t, "shop.git")
	source.Write(map[string]string{"a/fleet.yaml": "{}", "a/a.yaml": gitConfigMap("one"), "b/fleet.yaml": "{}",
		"b/b.yaml": gitConfigMap("one")})
	first := source.Push("main")
	stalls, cloning := &atomic.Bool{}, make(chan struct{}, 1)
	_, address, ca := source.Web("", "", func(serve http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if strings.HasSuffix(request.URL.Path, "/git-upload-pack") && stalls.CompareAndSwap(true, false) {
				_, _ = io.Copy(io.Discard, request.Body)
				cloning <- struct{}{}
				<-request.Context().Done() // the client was killed
				return
			}
			serve.ServeHTTP(w, request)
		})
	})
	f.check(f.Create(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "hook"},
		StringData: map[string]string{"gitlab": "hunter2"}}))
	f.gitRepo("shop", address, ca, func(spec *fleet.GitRepoSpec) { spec.DisablePolling, spec.WebhookSecret = true, "hook" })
	start := func(webhook string) *testkube.Program {
		return testkube.Run(t, "muster-hub", "gitops", "--kubeconfig", f.kubeconfigOf(f.gitOpsConfig().Impersonate.UserName), "--namespace",
			naming.SystemNamespace, "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--allow-loopback",
			"--webhook-bind-address", webhook, "--directory", t.TempDir())
	}
	worker := start("0")
	f.atCommit("shop", first)
	standby := testgit.FreeAddress(f.t)
	successor := start(standby)
	source.Write(map[string]string{"a/a.yaml": gitConfigMap("two"), "b/b.yaml": "", "b/fleet.yaml": ""})
	second := source.Push("main")
	f.eventually("the other takes the push", func() error { return testgit.Announce(standby, "hunter2", second, address) })
	worker.Kill()
	f.atCommit("shop", second)
	f.eventually("only the Bundle of the new commit is left", func() error { // the hub deletes the other one
		if left := f.bundlesOf("shop"); len(left) != 1 || !strings.Contains(fmt.Sprint(left["shop-a"].Spec.Resources), "two") {
			return fmt.Errorf("%d Bundles: %v", len(left), left)
		}
		return nil
	})

	stalls.Store(true)
	source.Write(map[string]string{"a/a.yaml": gitConfigMap("three")})
	third := source.Push("main")
	start("0")
	f.eventually("the worker takes the push", func() error { return testgit.Announce(standby, "hunter2", third, address) })
	<-cloning
	if repo := f.atCommit("shop", second); !strings.Contains(fmt.Sprint(f.bundlesOf("shop")["shop-a"].Spec.Resources), "two") {
		t.Errorf("a Bundle has changed before the clone was done: %+v", repo.Status)
	}
	successor.Kill()
	f.atCommit("shop", third)
	if left := f.bundlesOf("shop"); len(left) != 1 || !strings.Contains(fmt.Sprint(left["shop-a"].Spec.Resources), "three") {
		t.Errorf("%d Bundles: %v", len(left), left)
	}
}

// TestARightThatAKilledHubHasLeftIsRemoved leaves the Role of muster-hub gitops in a workspace
// without a GitRepo, as a hub does that is killed between the deletions of binding and Role.
func TestARightThatAKilledHubHasLeftIsRemoved(t *testing.T) {
	f := newAlone(t, "")
	f.hub.Kill()
	f.check(f.Create(context.Background(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.workspace, Name: naming.GitOpsAccount, Labels: map[string]string{fleet.LabelManaged: "true"},
		},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"x"}, Verbs: []string{"get"},
		}},
	}))
	f.hub.Start()
	f.eventually("the Role is gone", func() error { return gone(f.get(&rbacv1.Role{}, f.workspace, naming.GitOpsAccount)) })
}
