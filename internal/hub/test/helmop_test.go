package hub_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/testgit"
)

// chartServer is a repository with versions of the chart web, for the user me.
type chartServer struct {
	*httptest.Server
	lock     sync.Mutex
	versions []string
}

// newChartServer serves charts by https, with a self-signed certificate.
func newChartServer(t *testing.T, versions ...string) *chartServer {
	t.Helper()
	s := &chartServer{versions: versions}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "hunter2" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		s.lock.Lock()
		defer s.lock.Unlock()
		if r.URL.Path == "/index.yaml" {
			text := "apiVersion: v1\nentries:\n  web:\n"
			for _, version := range s.versions {
				text += fmt.Sprintf("  - {name: web, version: %s, urls: [web-%s.tgz]}\n", version, version)
			}
			_, _ = w.Write([]byte(text))
			return
		}
		version := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/web-"), ".tgz")
		_, _ = w.Write(chartArchive(t, version))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *chartServer) publish(version string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.versions = append(s.versions, version)
}

func chartArchive(t *testing.T, version string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	files := tar.NewWriter(zipped)
	for name, text := range map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: " + version + "\n",
		"web/templates/a.yaml": gitConfigMap("v" + version)} {
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Error(err)
		}
		if _, err := files.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Error(err)
	}
	if err := zipped.Close(); err != nil {
		t.Error(err)
	}
	return buffer.Bytes()
}

// helmOp creates a HelmOp for all Clusters, which looks each second.
func (f fixture) helmOp(name string, helm fleet.HelmOptions, edit ...func(*fleet.HelmOpSpec)) *fleet.HelmOp {
	f.t.Helper()
	op := &fleet.HelmOp{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}}
	op.Spec.Helm, op.Spec.PollingInterval = &helm, &metav1.Duration{Duration: time.Second}
	op.Spec.Targets = []fleet.BundleTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}}
	for _, one := range edit {
		one(&op.Spec)
	}
	f.check(f.Create(context.Background(), op))
	return op
}

// withLogin lets a HelmOp read the charts of a chartServer.
func withLogin(spec *fleet.HelmOpSpec) {
	spec.HelmSecretName, spec.InsecureSkipTLSVerify = "charts", true
}

// helmOpSays waits until a condition of a HelmOp has a reason, and returns the HelmOp.
func (f fixture) helmOpSays(name, condition, reason string, parts ...string) *fleet.HelmOp {
	f.t.Helper()
	op := &fleet.HelmOp{}
	f.eventually(fmt.Sprintf("%s of %s is %s", condition, name, reason), func() error {
		if err := f.get(op, f.workspace, name); err != nil {
			return err
		}
		is := kube.FindCondition(op.Status.Conditions, condition)
		if is == nil || is.Reason != reason || slices.ContainsFunc(parts,
			func(part string) bool { return !strings.Contains(is.Message, part) }) {
			return fmt.Errorf("the status is %+v", op.Status)
		}
		return nil
	})
	return op
}

// atVersion waits until a HelmOp has a version, and returns its Bundle.
func (f fixture) atVersion(name, version string) fleet.Bundle {
	f.t.Helper()
	op, bundle := &fleet.HelmOp{}, fleet.Bundle{}
	f.eventually(name+" is at version "+version, func() error {
		if err := f.get(op, f.workspace, name); err != nil {
			return err
		}
		if op.Status.Version != version {
			return fmt.Errorf("the status is %+v", op.Status)
		}
		return nil
	})
	f.check(f.get(&bundle, f.workspace, name))
	return bundle
}

// login creates the Secret for charts.
func (f fixture) login() {
	f.t.Helper()
	f.check(f.Create(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "charts"},
		StringData: map[string]string{"username": "me", "password": "hunter2"}}))
}

// TestSilentServersOfChartsLeaveAPlaceToOtherWorkspaces has six charts of one workspace on a server
// without answers, and one chart of another workspace.
func TestSilentServersOfChartsLeaveAPlaceToOtherWorkspaces(t *testing.T) {
	f := withGitOps(t)
	var asked atomic.Int32
	silent := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(silent.CloseClientConnections)
	for i := range 6 {
		f.helmOp(fmt.Sprintf("silent-%d", i), fleet.HelmOptions{Repo: silent.URL, Chart: "web", Version: "1.0.0"},
			func(spec *fleet.HelmOpSpec) { spec.InsecureSkipTLSVerify = true })
	}
	f.eventually("the charts of the workspace have their places", func() error {
		if n := asked.Load(); n < 3 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	other := f.neighbour()
	other.login()
	other.helmOp("web", fleet.HelmOptions{Repo: newChartServer(t, "1.0.0").URL, Chart: "web", Version: "1.0.0"}, withLogin)
	other.atVersion("web", "1.0.0")
	if n := asked.Load(); n != 3 {
		t.Errorf("%d charts of one workspace are at work", n)
	}
}

func TestAHelmOpFollowsTheRangeOfItsVersion(t *testing.T) {
	f := withGitOps(t)
	p, ctx := f.place("c1", nil), context.Background()
	server := newChartServer(t, "1.0.0", "2.0.0")
	op := f.helmOp("web", fleet.HelmOptions{Repo: server.URL, Chart: "web", Version: "^1", ReleaseName: "shop"}, withLogin,
		func(spec *fleet.HelmOpSpec) { spec.Labels = map[string]string{"team": "a"} })
	f.helmOpSays("web", "Accepted", "ChartCredentialsUnusable", "Secret "+f.workspace+"/charts of spec.helmSecretName", "not found")
	f.login()
	bundle := f.atVersion("web", "1.0.0")
	text := func(bundle fleet.Bundle) (text string) {
		for _, resource := range bundle.Spec.Resources {
			text += resource.Content
		}
		return text
	}
	if bundle.Labels[fleet.LabelHelmOpName] != "web" || bundle.Labels["team"] != "a" || bundle.Spec.Helm.ReleaseName != "shop" ||
		!strings.Contains(text(bundle), "v1.0.0") {
		t.Fatalf("%+v", bundle)
	}
	p.deployment("web", there)
	f.helmOpSays("web", "Ready", "BundlesNotReady", "web: ")
	f.helmOpSays("web", "Polled", "Polled")
	var cluster fleet.Cluster
	f.eventually("the Cluster counts it", func() error {
		if err := f.get(&cluster, f.workspace, "c1"); err != nil {
			return err
		}
		if cluster.Status.DesiredReadyHelmOps != 1 {
			return fmt.Errorf("%+v", cluster.Status)
		}
		return nil
	})

	server.publish("1.1.0")
	bundle = f.atVersion("web", "1.1.0")
	if !strings.Contains(text(bundle), "v1.1.0") {
		t.Errorf("%+v", bundle.Spec)
	}
	f.change(&bundle, func() { bundle.Spec.Resources = nil })
	f.eventually("the Bundle is written back", func() error {
		var now fleet.Bundle
		if err := f.get(&now, f.workspace, "web"); err != nil {
			return err
		}
		if !strings.Contains(text(now), "v1.1.0") || now.UID != bundle.UID {
			return fmt.Errorf("%+v", now)
		}
		return nil
	})
	server.Close()
	f.helmOpSays("web", "Polled", "ChartUnreadable", "connection refused", "deployed objects stay at version 1.1.0")
	f.check(f.Delete(ctx, op))
	f.eventually("the Bundle is gone", func() error { return gone(f.get(&fleet.Bundle{}, f.workspace, "web")) })
}

func TestAHelmOpHarmsNoBundleOfOthersAndBreaksNoPolicy(t *testing.T) {
	f := withGitOps(t)
	f.login()
	server := newChartServer(t, "1.0.0")
	chart := fleet.HelmOptions{Repo: server.URL, Chart: "web", Version: "1.0.0"}
	theirs := f.bundle("web", configMap+"targets: [{clusterName: none}]\n")
	former := f.bundle("shop", configMap+"targets: [{clusterName: none}]\n")
	f.change(former, func() { former.Labels = map[string]string{fleet.LabelHelmOpName: "shop"} })
	f.helmOp("web", chart, withLogin)
	f.helmOp("shop", chart, withLogin)
	f.helmOpSays("web", "Ready", "BundleNameTaken", "Bundle web exists and is not of this HelmOp")
	var now fleet.Bundle
	f.check(f.get(&now, f.workspace, "web"))
	if now.UID != theirs.UID || now.Generation != theirs.Generation || len(now.OwnerReferences) > 0 {
		t.Errorf("the other's Bundle was changed: %+v", now.ObjectMeta)
	}
	if taken := f.atVersion("shop", "1.0.0"); taken.UID != former.UID || len(taken.OwnerReferences) != 1 {
		t.Errorf("the former Bundle: %+v", taken.ObjectMeta)
	}
	f.helmOp("none", fleet.HelmOptions{Chart: "./web"})
	f.helmOpSays("none", "Accepted", "HelmOpInvalid", "is no address of an archive")

	policy := &fleet.Policy{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "charts"}}
	policy.HelmOp = &fleet.HelmOpRules{AllowedHelmRepoPatterns: []string{"https://charts.example.com"}}
	f.check(f.Create(context.Background(), policy))
	f.helmOpSays("shop", "Accepted", "PolicyViolation", "spec.helm.repo is ", "which no pattern of Policy charts")
	f.check(f.get(&now, f.workspace, "shop"))
	if len(now.Spec.Resources) == 0 {
		t.Error("what was delivered is gone")
	}
}

// TestACommitOrAHelmOpHasNothingCopiedThatItsAuthorMayNotRead plays an author without a right to
// Secrets, and the author of a commit.
func TestACommitOrAHelmOpHasNothingCopiedThatItsAuthorMayNotRead(t *testing.T) {
	f := withGitOps(t)
	ctx := context.Background()
	p := f.place("c1", nil)
	f.login()
	f.secret("pull", "one")
	author, role := f.userWith(f.workspace, "author", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"helmops", "policies"}, Verbs: []string{"*"},
	})
	server := newChartServer(t, "1.0.0")
	op := func(name string) *fleet.HelmOp {
		o := &fleet.HelmOp{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name}}
		o.Spec.Helm = &fleet.HelmOptions{Repo: server.URL, Chart: "web", Version: "1.0.0"}
		withLogin(&o.Spec)
		o.Spec.Targets = []fleet.BundleTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}}
		return o
	}
	plain, copying := op("plain"), op("copying")
	copying.Spec.DownstreamResources = []fleet.DownstreamResource{{Kind: "Secret", Name: "pull"}}
	policy := &fleet.Policy{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "copies"}}
	policy.AllowedDownstreamResources = []fleet.AllowedDownstreamResource{{Kind: "Secret", Name: "pull"}}
	f.eventually("the author may write HelmOps", func() error { return author.Create(ctx, plain.DeepCopy()) })
	for _, one := range []client.Object{copying, policy} {
		err := author.Create(ctx, one.DeepCopyObject().(client.Object))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "you may not get Secrets in this namespace") {
			t.Errorf("an author without rights creates %T: %v", one, err)
		}
	}

	// A commit gives no right, though the program may read the Secret of the HelmOp.
	f.change(role, func() {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"},
			ResourceNames: []string{"pull"}, Verbs: []string{"get"}})
	})
	f.eventually("an author who may read this Secret", func() error { return author.Create(ctx, copying.DeepCopy()) })
	f.atVersion("copying", "1.0.0")
	p.deployment("copying", there)
	p.untilCopied("pull", "one", "copying")
	source := testgit.New(t, "shop.git")
	source.Write(map[string]string{"fleet.yaml": "downstreamResources: [{kind: Secret, name: pull}]\n", "a.yaml": gitConfigMap("one")})
	source.Push("main")
	_, address, ca := source.Web("", "")
	f.gitRepo("shop", address, ca)
	f.gitRepoSays("shop", "Ready", "PolicyViolation", `Secret "pull", and a commit gives no right to read it`)
	if all := f.bundlesOf("shop"); len(all) > 0 {
		t.Errorf("%d Bundles", len(all))
	}
	f.check(author.Create(ctx, policy.DeepCopy()))
	f.gitRepoSays("shop", "Ready", "BundlesNotReady")
	p.deployment("shop", there)
	p.untilCopied("pull", "one", "copying", "shop")
}
