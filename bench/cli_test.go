package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/testkube"
)

// BenchmarkCommandLine measures a user's wait and cost in a fleet of 10,000 Clusters. One of the
// Clusters belongs to a real agent. The others are copies of it, created after the hub has ended,
// so that they stay as they are. The ceiling is the time to read the same pages without looking at
// them.
func BenchmarkCommandLine(b *testing.B) {
	const members = 10_000
	r := newRig(b)
	values, _ := r.token("new-token")
	agent := r.process("muster-agent", "--kubeconfig", filepath.Join(r.cluster.Dir, "kubeconfig"), "--namespace", r.member(values, "copied"),
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
	r.until(time.Now(), "copied", func(c *fleet.Cluster) bool { return !c.Status.Agent.LastSeen.IsZero() })
	time.Sleep(15 * time.Second) // until its Bundle is reported, too
	r.end(agent)
	r.end(r.hub)
	var clusters fleet.ClusterList
	r.check(r.List(context.Background(), &clusters, client.InNamespace(r.workspace)))
	const writers = 32
	r.each(writers, func(first int) error {
		for n := first; n < members-1; n += writers {
			if err := r.duplicate(clusters.Items[0], fmt.Sprintf("copy-%05d", n)); err != nil {
				return err
			}
		}
		return nil
	})
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(r.ceiling(), "ceiling-writes/s")
	for _, asked := range []struct {
		metric string
		do     func() float64
	}{
		{"help", func() float64 { return r.muster("--help") }},
		{"get", func() float64 { return r.muster("get") }},
		{"get-one", func() float64 { return r.muster("get", "clusters", r.workspace+"/copy-00042") }},
		{"explain", func() float64 { return r.muster("explain", "clusters", "copy-00042", "--namespace", r.workspace) }},
		{"ceiling-get", r.readPages},
	} {
		var took []time.Duration
		var memory float64
		for range 5 {
			r.settle()
			begun := time.Now()
			memory = max(memory, asked.do())
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		b.ReportMetric(rig.Percentile(took, 0.5).Seconds(), asked.metric+"-s")
		b.ReportMetric(memory, asked.metric+"-MiB")
	}
}

// duplicate makes another Cluster that is as one is.
func (r *testRig) duplicate(of fleet.Cluster, name string) error {
	one := of.DeepCopy()
	one.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: of.Namespace, Labels: of.Labels, Annotations: of.Annotations}
	one.Spec.ClientID = name
	if err := r.Create(context.Background(), one); err != nil {
		return err
	}
	one.Status = of.Status
	return r.Status().Update(context.Background(), one)
}

// muster runs a command on the hub to its end and returns how much memory it took, in MiB.
func (r *testRig) muster(args ...string) float64 {
	r.b.Helper()
	return r.musterOn(filepath.Join(r.cluster.Dir, "kubeconfig"), args...)
}

// musterOn is muster with other kubeconfigs.
func (r *testRig) musterOn(kubeconfigs string, args ...string) float64 {
	r.b.Helper()
	command := exec.Command(testkube.Build(r.b, "muster"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfigs, "HOME="+r.b.TempDir())
	if out, err := command.CombinedOutput(); err != nil {
		r.b.Fatalf("muster %v: %v\n%s", args, err, out)
	}
	return float64(command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024
}

// readPages reads all Clusters in the pages in which muster does, and looks at no more than
// where the next one is.
func (r *testRig) readPages() float64 {
	r.b.Helper()
	clientset, err := kubernetes.NewForConfig(r.cluster.Config)
	r.check(err)
	where := regexp.MustCompile(`"continue":"([^"]+)"`)
	for next := ""; ; {
		data, err := clientset.RESTClient().Get().AbsPath("/apis/fleet.cattle.io/v1alpha1/clusters").Param("limit", "500").Param("continue",
			next).DoRaw(context.Background())
		r.check(err)
		found := where.FindSubmatch(data[len(data)-min(len(data), 1024):]) // the API server writes it last
		if found == nil {
			return 0
		}
		next = string(found[1])
	}
}
