package bench

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// BenchmarkLeave: a MemberCluster on a control plane of its own, whose agent has applied two
// placements, is deleted → objects and record are gone. Once the placements are of cluster-scoped
// objects, once of two Namespaces with ten objects each, which the member's own Kubernetes has to
// empty and to finalize.
func BenchmarkLeave(b *testing.B) {
	r := newRig(b)
	on := testkube.Start(b, "leaving")
	on.InstallCRDs(b)
	m := &leaving{testRig: r, on: on, member: on.Client(b), programs: r.programs()}
	ceiling := r.ceiling()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ceiling, "ceiling/s")
	b.ReportMetric(m.emptyNamespace().Seconds(), "kubernetes-namespace-s")
	for name, selectors := range map[string]func() []placement.ResourceSelector{"objects": m.roles, "namespaces": m.namespaces} {
		var record, all []time.Duration
		for i := range 7 {
			recordGone, allGone := m.once(fmt.Sprintf("%s-%d", name, i), selectors)
			record, all = append(record, recordGone), append(all, allGone)
		}
		slices.Sort(record)
		slices.Sort(all)
		b.Logf("%s: record %v, all %v", name, record, all)
		b.ReportMetric(rig.Percentile(record, 0.5).Seconds(), name+"-record-s")
		b.ReportMetric(rig.Percentile(all, 0.5).Seconds(), name+"-all-s")
		b.ReportMetric(all[len(all)-1].Seconds(), name+"-worst-s")
	}
}

type leaving struct {
	*testRig
	on       testkube.Cluster
	member   client.Client
	programs string
	made     int
}

// programs builds the agent and, beside it, what it starts to deliver.
func (r *testRig) programs() string {
	r.b.Helper()
	dir := r.b.TempDir()
	for _, program := range []string{"muster-agent", "muster-deployer"} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, program), "../cmd/"+program)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			r.b.Fatalf("building %s: %v\n%s", program, err, out)
		}
	}
	return dir
}

// roles makes five cluster-scoped objects and selects them.
func (m *leaving) roles() (selectors []placement.ResourceSelector) {
	for range 5 {
		m.made++
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("placed-%d", m.made)}}
		m.check(m.Create(context.Background(), role))
		selectors = append(selectors, placement.ResourceSelector{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole", Name: role.Name})
	}
	return selectors
}

func (m *leaving) namespaces() []placement.ResourceSelector {
	return []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: m.shop()}}
}

// emptyNamespace is how long Kubernetes alone takes to delete a Namespace, even an empty one: its
// controller waits five seconds first.
func (m *leaving) emptyNamespace() time.Duration {
	m.b.Helper()
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}
	m.check(m.member.Create(ctx, namespace))
	m.settle()
	begun := time.Now()
	m.check(m.member.Delete(ctx, namespace))
	m.await("the namespace is gone", func() bool {
		return apierrors.IsNotFound(m.member.Get(ctx, client.ObjectKeyFromObject(namespace), namespace))
	})
	return time.Since(begun)
}

// once lets a member join, places on it twice, and lets it leave. It returns when the record was
// gone, and when everything was.
func (m *leaving) once(name string, selectors func() []placement.ResourceSelector) (record, all time.Duration) {
	m.b.Helper()
	ctx := context.Background()
	agent := m.join(name)
	defer m.end(agent)
	var placed []placement.ResourceSelector
	for i := range 2 {
		crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i)},
			Spec: placement.PlacementSpec{
				ResourceSelectors: selectors(), Policy: &placement.PlacementPolicy{PlacementType: placement.PickFixed, ClusterNames: []string{name}},
			}}
		placed = append(placed, crp.Spec.ResourceSelectors...)
		m.check(m.Create(ctx, crp))
		defer func() { m.check(m.Delete(ctx, crp)) }()
		m.await("the placement is available", func() bool {
			m.check(m.Get(ctx, client.ObjectKeyFromObject(crp), crp))
			return meta.IsStatusConditionTrue(crp.Status.Conditions, "ClusterResourcePlacementAvailable")
		})
	}
	m.settle()
	begun := time.Now()
	m.check(m.Delete(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	m.await("the record is gone", func() bool {
		return apierrors.IsNotFound(m.Get(ctx, client.ObjectKey{Name: name}, &clusterv1beta1.MemberCluster{}))
	})
	record = time.Since(begun)
	m.await("the objects are gone", func() bool {
		for _, s := range placed {
			o := kube.Metadata(schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind})
			if !apierrors.IsNotFound(m.member.Get(ctx, client.ObjectKey{Name: s.Name}, o)) {
				return false
			}
		}
		return true
	})
	return record, time.Since(begun)
}

// join registers a member and starts its agent.
func (m *leaving) join(name string) *exec.Cmd {
	m.b.Helper()
	ctx := context.Background()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: name}}
	m.await("there is a namespace for identities", func() bool { return m.Create(ctx, account) == nil })
	m.check(m.Create(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1beta1.MemberClusterSpec{
		Identity: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: account.Namespace}, HeartbeatPeriodSeconds: 60,
	}}))
	bearer, err := kube.RequestToken(ctx, m.SubResource("token"), account, time.Hour)
	m.check(err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-"}}
	m.check(m.member.Create(ctx, namespace))
	m.check(m.member.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "token"}, StringData: map[string]string{"token": bearer},
	}))
	agent := m.run(exec.Command(filepath.Join(m.programs, "muster-agent"), "--kubeconfig", filepath.Join(m.on.Dir, "kubeconfig"),
		"--namespace", namespace.Name,
		"--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--hub-server-url", m.cluster.Config.Host,
		"--member-cluster-name", name,
		"--hub-certificate-authority", base64.StdEncoding.EncodeToString(m.cluster.Config.CAData), "--hub-token-secret", namespace.Name+"/token"))
	var mc clusterv1beta1.MemberCluster
	m.await("the member is healthy", func() bool {
		m.check(m.Get(ctx, client.ObjectKey{Name: name}, &mc))
		return meta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1beta1.ConditionHealthy)
	})
	return agent
}

// await waits until something is so.
func (r *testRig) await(what string, is func() bool) {
	r.b.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			r.b.Fatalf("not so after a minute: %s", what)
		}
	}
}
