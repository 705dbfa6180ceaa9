package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/naming"
)

// BenchmarkDeliver measures how long one BundleDeployment takes to an idle cluster, and the memory
// of agent and deployer with 50 releases.
func BenchmarkDeliver(b *testing.B) {
	r := newRig(b)
	values, _ := r.token("new-token")
	dir := r.programs()
	// The cluster runs no pods, so the agent could not replace itself.
	r.check(r.Create(context.Background(), &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.workspace, Name: naming.Cluster("deliver"), Labels: map[string]string{fleet.LabelNonManagedAgent: "true"},
		},
		Spec: fleet.ClusterSpec{ClientID: "deliver"},
	}))
	command := r.run(exec.Command(filepath.Join(dir, "muster-agent"), "--kubeconfig", filepath.Join(r.cluster.Dir, "kubeconfig"),
		"--namespace", r.member(values, "deliver"), "--metrics-bind-address", "0", "--health-probe-bind-address", "0"))
	b.Cleanup(func() { r.end(command) })
	var cluster fleet.Cluster
	r.until(time.Now(), "deliver", func(c *fleet.Cluster) bool {
		cluster = *c
		return !c.Status.Agent.LastSeen.IsZero()
	})
	b.ReportMetric(0, "ns/op")
	time.Sleep(5 * time.Second)
	b.ReportMetric(r.rss(command), "idle-agent-MiB")

	b.ReportMetric(r.deliver(cluster.Status.Namespace, 0).Seconds(), "first-s")
	b.ReportMetric(r.deliver(cluster.Status.Namespace, 1).Seconds(), "second-s")
	begun := time.Now()
	const releases = 50
	for i := 2; i < releases; i++ {
		r.placed(cluster.Status.Namespace, i)
	}
	for i := 2; i < releases; i++ {
		r.ready(cluster.Status.Namespace, i)
	}
	b.ReportMetric(time.Since(begun).Seconds(), "next-48-s")
	time.Sleep(20 * time.Second)
	child := r.child(command)
	b.ReportMetric(r.rss(command), "agent-MiB")
	b.ReportMetric(r.rss(child), "deployer-MiB")
	b.ReportMetric(r.memory(child, "VmHWM:"), "deployer-peak-MiB")
}

// deliver is how long one BundleDeployment takes until its status says Ready.
func (r *testRig) deliver(namespace string, i int) time.Duration {
	begun := time.Now()
	r.placed(namespace, i)
	r.ready(namespace, i)
	return time.Since(begun)
}

func (r *testRig) placed(namespace string, i int) {
	r.b.Helper()
	name := fmt.Sprintf("bundle-%d", i)
	var resources []fleet.BundleResource
	for n := range 5 {
		resources = append(resources, fleet.BundleResource{Name: fmt.Sprintf("%d.yaml", n), Content: fmt.Sprintf(
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s-%d\ndata:\n  key: %s\n", name, n, strings.Repeat("x", 500))})
	}
	content, err := delivery.Pack(resources)
	r.check(err)
	r.check(r.Create(context.Background(), content))
	options := fleet.BundleDeploymentOptions{DefaultNamespace: "delivered"}
	id, err := delivery.DeploymentID(content.Name, options)
	r.check(err)
	r.check(r.Create(context.Background(), &fleet.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       fleet.BundleDeploymentSpec{DeploymentID: id, Options: options},
	}))
}

func (r *testRig) ready(namespace string, i int) {
	r.b.Helper()
	var found fleet.BundleDeployment
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		r.check(r.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("bundle-%d", i)}, &found))
		if delivery.StateOf(&found) == fleet.StateReady {
			return
		}
		if time.Now().After(end) {
			r.b.Fatalf("bundle-%d: %+v", i, found.Status)
		}
	}
}

// child is the deployer of an agent.
func (r *testRig) child(agent *exec.Cmd) *exec.Cmd {
	r.b.Helper()
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", agent.Process.Pid))
	r.check(err)
	for _, path := range children {
		text, err := os.ReadFile(path)
		r.check(err)
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			r.check(err)
			process, err := os.FindProcess(pid)
			r.check(err)
			return &exec.Cmd{Process: process}
		}
	}
	r.b.Fatal("the agent has no deployer")
	return nil
}
