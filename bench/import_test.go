package bench

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/agent"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// BenchmarkImport: a Cluster with a kubeconfig is created → its agent is installed → its first beat
// is visible; then 50 at once, 10 of them with endpoints that accept connections and never answer.
// One second control plane plays all clusters, at an address and with a UID of its own for each; in
// place of its kubelets the benchmark runs an agent in its own process where one was installed.
func BenchmarkImport(b *testing.B) {
	r := newRig(b)
	down := testkube.Start(b, "downstream")
	i := importRig{testRig: r, down: down, remote: down.Client(b), token: down.Account(b, "importer", "cluster-admin")}
	var installed, seen []time.Duration
	const rounds = 7
	for n := range rounds {
		name := fmt.Sprintf("one-%d", n)
		i.prepare(name)
		r.settle()
		begun := time.Now()
		i.create(name)
		i.runAgent(name)
		installed = append(installed, time.Since(begun))
		seen = append(seen, i.until(begun, name, func(c *fleet.Cluster) bool { return !c.Status.Agent.LastSeen.IsZero() }))
	}
	slices.Sort(installed)
	slices.Sort(seen)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rig.Percentile(installed, 0.5).Seconds(), "installed-s")
	b.ReportMetric(rig.Percentile(seen, 0.5).Seconds(), "visible-s")
	b.ReportMetric(seen[len(seen)-1].Seconds(), "visible-max-s")

	const live, dead = 40, 10
	var lives, deads []string
	for n := range live {
		lives = append(lives, fmt.Sprintf("live-%d", n))
		i.prepare(lives[n])
	}
	for n := range dead {
		deads = append(deads, fmt.Sprintf("dead-%d", n))
		i.prepareDead(deads[n])
	}
	r.settle()
	begun := time.Now()
	r.each(dead, func(n int) error { return i.tryCreate(deads[n]) })
	r.each(live, func(n int) error { return i.tryCreate(lives[n]) })
	for _, name := range lives {
		i.runAgent(name)
	}
	var last time.Duration
	for _, name := range lives {
		last = max(last, i.until(begun, name, func(c *fleet.Cluster) bool { return !c.Status.Agent.LastSeen.IsZero() }))
	}
	b.ReportMetric(last.Seconds(), "40-visible-s")
	for _, name := range deads {
		last = max(last, i.until(begun, name, func(c *fleet.Cluster) bool {
			imported := kube.FindCondition(c.Status.Conditions, fleet.ConditionImported)
			return imported != nil && imported.Reason == "Unreachable"
		}))
	}
	b.ReportMetric(last.Seconds(), "10-explained-s")
	b.ReportMetric(r.rss(r.hub), "hub-MiB")
}

// importRig is a rig with a second control plane.
type importRig struct {
	*testRig
	down   testkube.Cluster
	remote client.Client
	token  string
}

// prepare makes the Secret of a cluster that answers, and the namespace of its agent.
func (i importRig) prepare(name string) {
	i.b.Helper()
	i.check(i.remote.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "agent-" + name}}))
	i.secret(name, i.down.Disguise(i.b, string(uuid.NewUUID()), nil))
}

// prepareDead makes the Secret of one that does not.
func (i importRig) prepareDead(name string) {
	i.b.Helper()
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	i.check(err)
	i.b.Cleanup(func() { hole.Close() })
	silent := i.down
	silent.Config = &rest.Config{Host: "https://" + hole.Addr().String(), TLSClientConfig: i.down.Config.TLSClientConfig}
	i.secret(name, silent)
}

func (i importRig) secret(name string, cluster testkube.Cluster) {
	i.b.Helper()
	i.check(i.Create(context.Background(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace, Name: name}, Data: map[string][]byte{
			"value": cluster.Kubeconfig(i.b, i.token), "apiServerURL": []byte(i.cluster.Config.Host), "apiServerCA": i.cluster.Config.CAData,
		}}))
}

func (i importRig) tryCreate(name string) error {
	return i.Create(context.Background(), &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.workspace, Name: name},
		Spec:       fleet.ClusterSpec{KubeConfigSecret: name, AgentNamespace: "agent-" + name},
	})
}

func (i importRig) create(name string) {
	i.b.Helper()
	i.check(i.tryCreate(name))
}

// runAgent waits until an agent is installed, and runs it.
func (i importRig) runAgent(name string) {
	i.b.Helper()
	key := types.NamespacedName{Namespace: "agent-" + name, Name: naming.AgentBootstrapSecret}
	for i.remote.Get(context.Background(), key, &corev1.Secret{}) != nil {
		time.Sleep(5 * time.Millisecond)
	}
	running, err := agent.New(agent.Options{Member: i.down.Config, Namespace: key.Namespace, Hostname: "pod-1", Log: logr.Discard()})
	i.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	i.b.Cleanup(cancel)
	go running.Run(ctx)
}

// until returns how long it took until something is so of a Cluster.
func (i importRig) until(begun time.Time, name string, so func(*fleet.Cluster) bool) time.Duration {
	for {
		var cluster fleet.Cluster
		if i.Get(context.Background(), types.NamespacedName{Namespace: i.workspace, Name: name}, &cluster) == nil && so(&cluster) {
			return time.Since(begun)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
