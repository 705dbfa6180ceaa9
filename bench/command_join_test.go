package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// BenchmarkCommandJoin: how long muster join takes, beside what it does: a token, helm
// install --wait of the same chart, and the wait for the first beat. A cluster with a node joins by
// one and by the other in turn, and leaves each time.
func BenchmarkCommandJoin(b *testing.B) {
	const rounds = 5
	r := newRig(b)
	testkube.Build(b, "muster")
	testkube.Build(b, "muster-deployer") // which the agent starts from its own directory
	edge := testkube.Start(b, "edge", "--node=true", "--image", "muster-agent="+testkube.Build(b, "muster-agent"))
	kubeconfig := filepath.Join(edge.Dir, "kubeconfig")
	both := filepath.Join(r.cluster.Dir, "kubeconfig") + string(os.PathListSeparator) + kubeconfig
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(r.ceiling(), "ceiling-writes/s")
	took := map[string][]time.Duration{}
	for n := range 2 * rounds {
		metric, name := "join-s", fmt.Sprintf("edge-%d", n)
		join := func() {
			r.musterOn(both, "join", "--context", edge.Name(), "--hub-context", r.cluster.Name(), "--namespace", r.workspace, "--name", name)
		}
		if n%2 > 0 {
			metric, join = "by-helm-s", func() { name = r.joinByHelm(kubeconfig, name) }
		}
		r.settle()
		begun := time.Now()
		join()
		took[metric] = append(took[metric], time.Since(begun))
		r.musterOn(both, "leave", "clusters", r.workspace+"/"+name, "--orphan", "--context", r.cluster.Name())
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: naming.SystemNamespace}}
		r.check(edge.Client(b).Delete(context.Background(), namespace))
		r.await("the agent is gone", func() bool {
			return apierrors.IsNotFound(edge.Client(b).Get(context.Background(), client.ObjectKeyFromObject(namespace), namespace))
		})
	}
	for metric, all := range took {
		slices.Sort(all)
		b.ReportMetric(rig.Percentile(all, 0.5).Seconds(), metric)
		b.ReportMetric(all[len(all)-1].Seconds(), "max-"+metric)
	}
}

// joinByHelm has a cluster join as the how-to pages say, until the hub has heard of its agent, and
// returns the name of the Cluster.
func (r *testRig) joinByHelm(kubeconfig, clientID string) string {
	r.b.Helper()
	values, _ := r.token("of-" + clientID)
	values["clientID"], values["apiServerURL"], values["apiServerCA"] = clientID, r.cluster.Config.Host, string(r.cluster.Config.CAData)
	text, err := yaml.Marshal(values)
	r.check(err)
	home := r.b.TempDir()
	file := filepath.Join(home, "values.yaml")
	r.check(os.WriteFile(file, text, 0o600))
	command := exec.Command("../bin/helm", "install", "--namespace", naming.SystemNamespace, "--create-namespace", "--wait", "--values", file,
		"fleet-agent", "../charts/fleet-agent")
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+home)
	if out, err := command.CombinedOutput(); err != nil {
		r.b.Fatalf("helm: %v\n%s", err, out)
	}
	r.until(time.Now(), clientID, func(c *fleet.Cluster) bool { return !c.Status.Agent.LastSeen.IsZero() })
	return naming.Cluster(clientID)
}
