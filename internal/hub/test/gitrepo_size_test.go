package hub_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/repository/scan"
	"github.com/muster-fleet/muster/internal/testgit"
	"github.com/muster-fleet/muster/internal/testkube"
)

// gitOpsProgram starts the program itself, as its Pod does.
func (f fixture) gitOpsProgram() *testkube.Program {
	f.t.Helper()
	return testkube.Run(f.t, "muster-hub", "gitops", "--kubeconfig", f.kubeconfigOf(f.gitOpsConfig().Impersonate.UserName), "--namespace",
		naming.SystemNamespace, "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--allow-loopback",
		"--webhook-bind-address", "0", "--directory", f.t.TempDir())
}

// peakMemory is the largest memory of a process so far, in MiB.
func (f fixture) peakMemory(process *testkube.Program) int {
	f.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.PID()))
	f.check(err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	f.check(err)
	return kilobytes >> 10
}

// TestRepositoriesOfExtremeSizeHarmNoOther has files and bytes without end. More servers of one
// workspace than the program reads at once never finish. Making five gigabytes of zeros takes half
// a minute.
func TestRepositoriesOfExtremeSizeHarmNoOther(t *testing.T) {
	f := newAlone(t, "")
	process := f.gitOpsProgram()
	made := func(name string, source *testgit.Repository, edit ...func(*fleet.GitRepoSpec)) {
		_, address, ca := source.Web("", "")
		f.gitRepo(name, address, ca, edit...)
	}

	tenant := f.neighbour()
	for i := range 6 {
		name := fmt.Sprintf("hangs-%d", i)
		source := testgit.New(t, name+".git")
		source.Write(map[string]string{"a.yaml": gitConfigMap("one")})
		source.Push("main")
		server, address, ca := source.Web("", "", func(serve http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if !strings.HasSuffix(request.URL.Path, "/git-upload-pack") {
					serve.ServeHTTP(w, request)
					return
				}
				_, _ = io.Copy(io.Discard, request.Body)
				<-request.Context().Done() // the program gives up, or the test ends
			})
		})
		t.Cleanup(server.CloseClientConnections)
		tenant.gitRepo(name, address, ca)
	}

	zeros := testgit.New(t, "zeros.git")
	zeros.PushZeros("main", "zeros.yaml", 5<<30)
	made("zeros", zeros)
	f.gitRepoSays("zeros", "Ready", "CommitUnreadable", "a file of the commit has more than 64 MiB")

	many := func(count int) []string {
		files := make([]string, count)
		for i := range files {
			files[i] = fmt.Sprintf("%03d/%d.yaml", i/1000, i)
		}
		return files
	}
	full, over := testgit.New(t, "full.git"), testgit.New(t, "over.git")
	commit := full.PushMany("main", many(scan.MaxPaths), gitConfigMap("one"))
	over.PushMany("main", many(scan.MaxPaths+1), gitConfigMap("one"))
	made("over", over)
	f.gitRepoSays("over", "Ready", "CommitUnreadable", "the repository has more than 100000 files: divide it")
	made("full", full, func(spec *fleet.GitRepoSpec) { spec.Paths = []string{"007"} })
	f.atCommit("full", commit)
	if bundles := f.bundlesOf("full"); len(bundles) != 1 || len(bundles["full-007"].Spec.Resources) != 1000 {
		t.Errorf("there are %d Bundles: %v", len(bundles), bundles)
	}

	plain := testgit.New(t, "plain.git")
	plain.Write(map[string]string{"a.yaml": gitConfigMap("one")})
	commit = plain.Push("main")
	made("plain", plain)
	f.atCommit("plain", commit)
	tenant.gitRepoSays("hangs-0", "Ready", "CommitUnreadable", "the server has sent nothing for 1m0s")
	if peak := f.peakMemory(process); peak > 512 {
		t.Errorf("the program had %d MiB, and its Pod may have 512", peak)
	} else {
		t.Logf("the program had %d MiB at most", peak)
	}
}

// TestARewrittenHistoryReplacesCommitsAndDeletesNoBundle rebases a branch, and then deletes the
// commit that another GitRepo names.
func TestARewrittenHistoryReplacesCommitsAndDeletesNoBundle(t *testing.T) {
	f := withGitOps(t)
	source := testgit.New(t, "shop.git")
	source.Write(map[string]string{"a.yaml": gitConfigMap("one")})
	first := source.Push("main")
	_, address, ca := source.Web("", "")
	pinned := func(spec *fleet.GitRepoSpec) { spec.Branch, spec.Revision = "", first }
	f.gitRepo("shop", address, ca)
	f.gitRepo("pinned", address, ca, pinned)
	f.atCommit("shop", first)
	f.atCommit("pinned", first)
	before := f.bundlesOf("shop")["shop"]
	source.Rewrite()
	source.Write(map[string]string{"a.yaml": gitConfigMap("two")})
	second := source.Push("main")
	f.atCommit("shop", second)
	if after := f.bundlesOf("shop")["shop"]; after.UID != before.UID || !strings.Contains(fmt.Sprint(after.Spec.Resources), "two") {
		t.Errorf("the Bundle is another one, or has another content: %+v", after)
	}

	source.Prune()
	f.gitRepo("late", address, ca, pinned)
	f.gitRepoSays("late", "Ready", "CommitUnreadable", "the repository has no commit "+first, "correct spec.revision")
	if bundles := f.bundlesOf("late"); len(bundles) > 0 {
		t.Errorf("a commit that is gone has Bundles: %v", bundles)
	}
	repo := &fleet.GitRepo{}
	f.check(f.get(repo, f.workspace, "pinned"))
	f.change(repo, func() { repo.Spec.ForceSyncGeneration++ })
	f.gitRepoSays("pinned", "Ready", "CommitUnreadable", "the repository has no commit "+first, "stay")
	if kept := f.bundlesOf("pinned")["pinned"]; !strings.Contains(fmt.Sprint(kept.Spec.Resources), "one") {
		t.Errorf("what was deployed does not stay: %+v", kept)
	}
	f.check(f.Delete(context.Background(), repo))
}
