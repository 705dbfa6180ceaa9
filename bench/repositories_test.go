package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testgit"
)

// BenchmarkRepositories: a repository of 50 MB with 200 directories → 200 Bundles; a push with a
// webhook → 100 BundleDeployments; 500 GitRepos that find nothing new → no write.
func BenchmarkRepositories(b *testing.B) {
	r := newRig(b)
	webhook := testgit.FreeAddress(b)
	reader := r.reader(webhook)
	r.monorepo()
	b.ReportMetric(r.memory(reader, "VmHWM:"), "monorepo-peak-MiB")
	r.pushes(webhook)
	r.polls(reader)
}

// BenchmarkLargeRepositories: 500 GitRepos of repositories of 50 MB, all of them new → memory
// of the program.
func BenchmarkLargeRepositories(b *testing.B) {
	const many = 500
	r := newRig(b)
	reader := r.reader("0")
	source, commit := r.large(1)
	_, address, ca := source.Web("", "")
	name := func(i int) string { return fmt.Sprintf("large-%d", i) }
	begun := time.Now()
	r.each(many, func(i int) error {
		return r.gitRepo(name(i), address, ca, func(spec *fleet.GitRepoSpec) { spec.Paths = []string{"apps/*"} })
	})
	for i := range many {
		r.atCommit(name(i), commit)
	}
	b.ReportMetric(time.Since(begun).Seconds(), "500-read-s")
	b.ReportMetric(r.rss(reader), "500-MiB")
	b.ReportMetric(r.memory(reader, "VmHWM:"), "500-peak-MiB")
}

// reader starts the program that reads repositories, and measures the ceiling.
func (r *testRig) reader(webhook string) *exec.Cmd {
	r.b.Helper()
	reader := r.process("muster-hub", "gitops", "--kubeconfig", filepath.Join(r.cluster.Dir, "kubeconfig"), "--namespace",
		naming.SystemNamespace, "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--leader-elect=false",
		"--allow-loopback", "--webhook-bind-address", webhook, "--directory", r.b.TempDir())
	r.b.Cleanup(func() { r.end(reader) })
	r.b.ReportMetric(0, "ns/op")
	r.b.ReportMetric(r.ceiling(), "ceiling/s")
	r.settle()
	return reader
}

// large pushes a repository of 50 MB with some directories for Bundles.
func (r *testRig) large(directories int) (source *testgit.Repository, commit string) {
	r.b.Helper()
	const blobs, size = 4, 12 << 20
	files := map[string]string{}
	for i := range directories {
		files[fmt.Sprintf("apps/%d/fleet.yaml", i)] = "defaultNamespace: app\n"
		files[fmt.Sprintf("apps/%d/a.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-%d}\n", i)
	}
	for i := range blobs {
		noise := make([]byte, size)
		_, err := rand.Read(noise)
		r.check(err)
		files[fmt.Sprintf("data/%d", i)] = string(noise)
	}
	source = testgit.New(r.b, "large.git")
	source.Write(files)
	return source, source.Push("main")
}

// monorepo reads a large repository.
func (r *testRig) monorepo() {
	r.b.Helper()
	source, commit := r.large(200)
	_, address, ca := source.Web("", "")
	begun := time.Now()
	r.check(r.gitRepo("large", address, ca, func(spec *fleet.GitRepoSpec) { spec.Paths = []string{"apps/*"} }))
	r.atCommit("large", commit)
	r.b.ReportMetric(time.Since(begun).Seconds(), "monorepo-s")
	r.check(r.Delete(context.Background(), &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: "large"}}))
	r.settle()
}

// pushes measures the time from a push to the BundleDeployments of 100 Clusters.
func (r *testRig) pushes(webhook string) {
	r.b.Helper()
	const clusters, rounds = 100, 10
	ctx := context.Background()
	r.each(clusters, func(i int) error {
		name := fmt.Sprintf("cluster-%d", i)
		return r.Create(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: name},
			Spec: fleet.ClusterSpec{ClientID: name}})
	})
	r.check(r.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: "hook"},
		StringData: map[string]string{"gitlab": "secret"}}))
	source := testgit.New(r.b, "app.git")
	_, address, ca := source.Web("", "")
	push := func(i int) string {
		source.Write(map[string]string{"a.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"%d\"}\n", i)})
		return source.Push("main")
	}
	first := push(0)
	r.check(r.gitRepo("app", address, ca, func(spec *fleet.GitRepoSpec) {
		spec.DisablePolling, spec.WebhookSecret, spec.Targets = true, "hook", []fleet.GitTarget{{ClusterSelector: &metav1.LabelSelector{}}}
	}))
	r.deployed(first, clusters)
	r.settle()
	var took []time.Duration
	for i := range rounds {
		commit := push(i + 1)
		begun := time.Now()
		r.check(testgit.Announce(webhook, "secret", commit, address))
		r.deployed(commit, clusters)
		took = append(took, time.Since(begun))
		r.settle()
	}
	slices.Sort(took)
	r.b.ReportMetric(rig.Percentile(took, 0.5).Seconds(), "push-median-s")
	r.b.ReportMetric(took[len(took)-1].Seconds(), "push-max-s")
}

// polls measures the cost of GitRepos that find nothing new.
func (r *testRig) polls(reader *exec.Cmd) {
	r.b.Helper()
	const many, watched = 500, time.Minute
	source := testgit.New(r.b, "small.git")
	source.Write(map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"})
	commit := source.Push("main")
	_, address, ca := source.Web("", "")
	name := func(i int) string { return fmt.Sprintf("small-%d", i) }
	begun := time.Now()
	r.each(many, func(i int) error { return r.gitRepo(name(i), address, ca, func(*fleet.GitRepoSpec) {}) })
	for i := range many {
		r.atCommit(name(i), commit)
	}
	r.b.ReportMetric(time.Since(begun).Seconds(), "500-read-s")
	time.Sleep(15 * time.Second) // the looks read Secrets, so the API server is never quiet
	mark, before := r.audit(), r.readerTime(reader)
	time.Sleep(watched)
	writes, kinds := mark.writes(r.b)
	r.b.Logf("writes while 500 GitRepos found nothing new: %v", kinds)
	r.b.ReportMetric(float64(writes), "500-idle-writes/min")
	r.b.ReportMetric(100*(r.readerTime(reader)-before)/watched.Seconds(), "500-idle-%core")
	r.b.ReportMetric(r.rss(reader), "500-MiB")
	r.b.ReportMetric(r.memory(reader, "VmHWM:"), "500-peak-MiB")
}

// readerTime is the processor time of the program that reads repositories, in seconds.
func (r *testRig) readerTime(reader *exec.Cmd) float64 {
	r.b.Helper()
	usages, err := rig.Usages(r.cluster.Dir, reader.Process.Pid)
	r.check(err)
	return usages["muster-hub"].CPU
}

func (r *testRig) gitRepo(name, address string, ca []byte, edit func(*fleet.GitRepoSpec)) error {
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: name},
		Spec: fleet.GitRepoSpec{Repo: address, Branch: "main", CABundle: ca}}
	edit(&repo.Spec)
	return r.Create(context.Background(), repo)
}

// atCommit waits until a GitRepo has a commit.
func (r *testRig) atCommit(name, commit string) {
	r.b.Helper()
	for repo := (fleet.GitRepo{}); repo.Status.Commit != commit; time.Sleep(10 * time.Millisecond) {
		r.check(r.Get(context.Background(), client.ObjectKey{Namespace: r.workspace, Name: name}, &repo))
	}
}

// deployed waits until so many BundleDeployments are of a commit.
func (r *testRig) deployed(commit string, count int) {
	r.b.Helper()
	for {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeploymentList"))
		r.check(r.List(context.Background(), &list, client.MatchingLabels{fleet.LabelCommit: commit}))
		if len(list.Items) == count {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
