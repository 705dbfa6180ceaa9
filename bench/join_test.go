package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// BenchmarkToken: a token is created → its values Secret is there.
func BenchmarkToken(b *testing.B) {
	r := newRig(b)
	r.token("warm-up")
	var all []time.Duration
	for i := range 20 {
		_, took := r.token(fmt.Sprintf("token-%d", i))
		all = append(all, took)
	}
	slices.Sort(all)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rig.Percentile(all, 0.5).Seconds(), "median-s")
	b.ReportMetric(all[len(all)-1].Seconds(), "max-s")
}

// BenchmarkAgent: the agent process is started → it is registered → its first beat is visible on
// the Cluster. The member is the same API server, which also counts the member's own writes: they
// are taken off by looking at the hub's kinds only.
func BenchmarkAgent(b *testing.B) {
	r := newRig(b)
	member := r.cluster
	values, _ := r.token("new-token")
	binary := testkube.Build(b, "muster-agent")
	var registered, visible []time.Duration
	var memory []float64
	const rounds = 7
	writes := 0
	for i := range rounds {
		id := fmt.Sprintf("agent-%d", i)
		namespace := r.member(values, id)
		r.settle()
		mark := r.audit()
		command := exec.Command(binary, "--kubeconfig", filepath.Join(member.Dir, "kubeconfig"), "--namespace", namespace,
			"--metrics-bind-address", "0", "--health-probe-bind-address", "0")
		begun := time.Now()
		r.run(command)
		registered = append(registered, r.until(begun, id, func(c *fleet.Cluster) bool { return r.granted(c.Name) }))
		visible = append(visible, r.until(begun, id, func(c *fleet.Cluster) bool { return !c.Status.Agent.LastSeen.IsZero() }))
		time.Sleep(15 * time.Second) // the count of the token is written at most every ten
		count, kinds := mark.writes(b)
		count -= kinds["create secrets "] + kinds["delete secrets "] + kinds["update secrets "] // the member's own
		count -= max(0, kinds["patch internalmemberclusters status"]-1)                         // the agents before it report its namespace
		writes += count
		if i == rounds-1 { // the first one makes what a workspace has once
			b.Logf("writes of one join: %v", kinds)
		}
		memory = append(memory, r.rss(command))
		defer r.end(command) // at the end, so that no member is lost while another is measured
	}
	slices.Sort(registered)
	slices.Sort(visible)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rig.Percentile(registered, 0.5).Seconds(), "registered-s")
	b.ReportMetric(rig.Percentile(visible, 0.5).Seconds(), "visible-s")
	b.ReportMetric(visible[len(visible)-1].Seconds(), "visible-max-s")
	b.ReportMetric(float64(writes)/rounds, "writes/join")
	b.ReportMetric(slices.Max(memory), "agent-MiB")
}

// member makes a namespace with the Secret and ConfigMap that the chart makes.
func (r *testRig) member(values map[string]string, clientID string) string {
	r.b.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-"}}
	r.check(r.Create(context.Background(), namespace))
	data := map[string]string{"apiServerURL": r.cluster.Config.Host, "apiServerCA": string(r.cluster.Config.CAData)}
	for _, key := range []string{"token", "tokenName", "clusterNamespace", "systemRegistrationNamespace"} {
		data[key] = values[key]
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace.Name, Name: name} }
	r.check(r.Create(context.Background(), &corev1.Secret{ObjectMeta: meta(naming.AgentBootstrapSecret), StringData: data}))
	r.check(r.Create(context.Background(), &corev1.ConfigMap{
		ObjectMeta: meta(naming.AgentConfigMap), Data: map[string]string{"config": fmt.Sprintf(`{"clientID":%q}`, clientID)},
	}))
	return namespace.Name
}

// until returns how long it took until something is so of the Cluster with a client ID.
func (r *testRig) until(begun time.Time, clientID string, so func(*fleet.Cluster) bool) time.Duration {
	key := types.NamespacedName{Namespace: r.workspace, Name: naming.Cluster(clientID)}
	for {
		var cluster fleet.Cluster
		if r.Get(context.Background(), key, &cluster) == nil && so(&cluster) {
			return time.Since(begun)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (r *testRig) granted(cluster string) bool {
	var list fleet.ClusterRegistrationList
	r.check(r.List(context.Background(), &list, client.InNamespace(r.workspace)))
	return slices.ContainsFunc(list.Items, func(c fleet.ClusterRegistration) bool {
		return c.Status.ClusterName == cluster && c.Status.Granted
	})
}

// joiner plays one agent on the wire and returns once its first beat is accepted.
type joiner func(ctx context.Context, r *testRig, bootstrap client.WithWatch, values map[string]string, id string) error

// BenchmarkBurstNative: 300 of our agents join at once.
func BenchmarkBurstNative(b *testing.B) { burst(b, joinNative) }

// BenchmarkBurstLegacy: 300 upstream agents join at once.
func BenchmarkBurstLegacy(b *testing.B) { burst(b, joinLegacy) }

func burst(b *testing.B, join joiner) {
	const members = 300
	r := newRig(b)
	values, _ := r.token("new-token")
	bootstrap := r.as(values["token"])
	r.check(join(context.Background(), r, bootstrap, values, "warm-up"))
	idle := r.rss(r.hub)
	before := r.ceiling()
	r.settle()
	mark, cpu := r.audit(), r.cpu()
	var mu sync.Mutex
	var took []time.Duration
	failed := 0
	begun := time.Now()
	var group sync.WaitGroup
	for i := range members {
		group.Go(func() {
			start := time.Now()
			err := join(context.Background(), r, bootstrap, values, fmt.Sprintf("burst-%d", i))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed++
				b.Logf("join %d: %v", i, err)
				return
			}
			took = append(took, time.Since(start))
		})
	}
	group.Wait()
	elapsed := time.Since(begun)
	for name, used := range r.cpu() {
		b.Logf("processor time: %6.2f s %s", used-cpu[name], name)
	}
	inBurst, _ := mark.writes(b)
	r.settle()
	total, kinds := mark.writes(b)
	b.Logf("writes: %v", kinds)
	ceiling := (before + r.ceiling()) / 2
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(failed), "failed")
	b.ReportMetric(members/elapsed.Seconds(), "joins/s")
	b.ReportMetric(rig.Percentile(took, 0.5).Seconds(), "p50-s")
	b.ReportMetric(rig.Percentile(took, 0.99).Seconds(), "p99-s")
	b.ReportMetric(float64(total)/members, "writes/join")
	b.ReportMetric(ceiling, "ceiling/s")
	b.ReportMetric(100*float64(inBurst)/elapsed.Seconds()/ceiling, "%ceiling")
	b.ReportMetric((r.rss(r.hub)-idle)*1024/members, "hub-KiB/member")
}

func joinNative(ctx context.Context, r *testRig, bootstrap client.WithWatch, values map[string]string, id string) error {
	key, err := credential.NewAnswerKey()
	if err != nil {
		return err
	}
	request := rig.Request(values, fleet.ClusterRegistrationSpec{ClientID: id, ClientRandom: id, AnswerKey: key.Public()})
	if err := bootstrap.Create(ctx, request); err != nil {
		return err
	}
	granted, err := awaitAnswer(ctx, bootstrap, request)
	if err != nil {
		return err
	}
	answer, err := key.Open(string(granted.UID), granted.Status.Answer)
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: answer.DeploymentNamespace, Name: naming.HeartbeatLease}}
	agent := r.as(answer.Token)
	return rig.Retry(ctx, func() error { return agent.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(patch))) })
}

// awaitAnswer watches the request as the agent does: refused until the hub has granted the right
// to, then to its end.
func awaitAnswer(ctx context.Context, bootstrap client.WithWatch, r *fleet.ClusterRegistration) (*fleet.ClusterRegistration, error) {
	var events watch.Interface
	err := rig.Retry(ctx, func() (err error) {
		events, err = bootstrap.Watch(ctx, &fleet.ClusterRegistrationList{}, client.InNamespace(r.Namespace),
			client.MatchingFields{"metadata.name": r.Name})
		return err
	})
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if seen, ok := event.Object.(*fleet.ClusterRegistration); ok && seen.Status.Granted {
			return seen, nil
		} else if ok && seen.Status.State == fleet.RegistrationDenied {
			return nil, fmt.Errorf("%s: %s", seen.Status.State, seen.Status.Message)
		}
	}
	return nil, errors.New("the watch ended")
}

// joinLegacy plays an agent of Rancher Fleet.
func joinLegacy(ctx context.Context, r *testRig, bootstrap client.WithWatch, values map[string]string, id string) error {
	_, err := rig.JoinRancher(ctx, func(bearer string) (client.WithWatch, error) { return r.as(bearer), nil }, bootstrap, values, id)
	return err
}
