package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/testkube"
)

// withPods is an exclusive control plane with Pods as processes of this machine.
func withPods(t *testing.T, name string, images ...string) testkube.Cluster {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	agent := testkube.Build(t, "muster-agent")
	testkube.Build(t, "muster-deployer") // which the agent starts from its own directory
	flags := []string{"--node=true"}
	for _, image := range append(images, "muster-hub="+testkube.Build(t, "muster-hub"), "muster-agent="+agent, "member-agent="+agent) {
		flags = append(flags, "--image", image)
	}
	return testkube.Turn(t, name, flags...)
}

// contexts returns a user with one context per cluster, named like the cluster. The first is
// the current one.
func contexts(t *testing.T, clusters ...testkube.Cluster) user {
	t.Helper()
	var rules clientcmd.ClientConfigLoadingRules
	for _, c := range clusters {
		rules.Precedence = append(rules.Precedence, filepath.Join(c.Dir, "kubeconfig"))
	}
	u := user{t: t, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), cacheDir: t.TempDir()}
	all, err := rules.Load()
	if err == nil {
		err = clientcmd.WriteToFile(*all, u.kubeconfig)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAHubIsInstalledInOneLine(t *testing.T) {
	t.Parallel()
	cluster := withPods(t, "cli-first")
	admin := contexts(t, cluster)
	out, said, err := admin.run("init", "--dry-run")
	if err != nil || !strings.Contains(out, "would install chart fleet ") {
		t.Errorf("--dry-run: %v\n%s%s", err, out, said)
	}
	out, _, err = admin.run("init", "--print", "--set", "controller.replicas=2")
	if err != nil || !strings.Contains(out, "replicas: 2") || !strings.Contains(out, "kind: ValidatingAdmissionPolicy\n") ||
		!strings.Contains(out, "clusterregistrationtokens") {
		t.Errorf("--print: %v\n%s", err, out)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "cattle-fleet-system", Name: hubDeployment}}
	if err := cluster.Client(t).Get(context.Background(), client.ObjectKeyFromObject(deployment), deployment); err == nil {
		t.Fatal("a hub is installed that was not asked for")
	}
	for again := range 2 {
		out, said, err := admin.run("init", "--set", "importLoopback=true")
		if err != nil || !strings.Contains(out,
			"the hub runs\nThe hub is running. To register a cluster: muster join --context CLUSTER --hub-context ") ||
			!strings.Contains(said, "Members on other machines cannot reach the hub at "+cluster.Config.Host) != (again == 1) {
			t.Errorf("%d: %v\n%s%s", again, err, out, said)
		}
	}
	printed := admin.runs("init --print")
	for _, kept := range []string{cluster.Config.Host, `importLoopback\":true`} {
		if !strings.Contains(printed, kept) {
			t.Errorf("what was set is not printed, %q:\n%s", kept, printed)
		}
	}
}

// TestAnOperationOfHelmThatWasKilledIsTakenUp leaves a revision like a killed program.
func TestAnOperationOfHelmThatWasKilledIsTakenUp(t *testing.T) {
	t.Parallel()
	cluster := withPods(t, "cli-init")
	admin := contexts(t, cluster)
	admin.runs("init")
	access := newAccess()
	access.KubeConfig = &admin.kubeconfig
	helm, err := access.helm(hubCharts()[1])
	if err != nil {
		t.Fatal(err)
	}
	leave := func(begun time.Time) {
		t.Helper()
		revisions, err := helm.history()
		if err != nil {
			t.Fatal(err)
		}
		last := revisions[len(revisions)-1]
		last.Info.Status, last.Info.LastDeployed = common.StatusPendingUpgrade, begun
		if err := helm.Releases.Update(last); err != nil {
			t.Fatal(err)
		}
	}
	leave(time.Now())
	admin.refused("init", "release fleet in namespace cattle-fleet-system has been in use by another program since ",
		"run the command again after its end, or after 5m")
	leave(time.Now().Add(-abandoned))
	admin.runs("init", "the hub runs")
	theirs, err := helm.history()
	if err != nil {
		t.Fatal(err)
	}
	last := theirs[len(theirs)-1]
	last.Chart.Metadata.Home = "https://example.com/fleet"
	if err := helm.Releases.Update(last); err != nil {
		t.Fatal(err)
	}
	admin.refused("init", "release fleet in namespace cattle-fleet-system is of another chart of that name, https://example.com/fleet 0.1.0: "+
		"docs/migration.md says how to change over")
	last.Chart.Metadata.Home = "https://github.com/muster-fleet/muster"
	if err := helm.Releases.Update(last); err != nil {
		t.Fatal(err)
	}
}
