package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// BenchmarkPlacement: of 1,000 members 100 have a label. A placement of ten objects onto these is
// created → all Works are written; one more member is labelled → it has its Work; one object
// changes → all Works hold the change.
func BenchmarkPlacement(b *testing.B) {
	const members, picked = 1000, 100
	r := newRig(b)
	ctx := context.Background()
	name := func(i int) string { return fmt.Sprintf("member-%04d", i) }
	labels := func(i int) map[string]string {
		if i < picked {
			return map[string]string{"env": "prod"}
		}
		return nil
	}
	r.all(members, func(i int) error {
		return r.Create(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name(i), Labels: labels(i)},
			Spec: clusterv1beta1.MemberClusterSpec{
				Identity: rbacv1.Subject{Kind: rbacv1.UserKind, Name: name(i)}, HeartbeatPeriodSeconds: 600,
			}})
	}, clusterv1beta1.ConditionReadyToJoin)
	r.all(members, func(i int) error { return r.answer(name(i), metav1.ConditionTrue) }, clusterv1beta1.ConditionHealthy)
	shop := r.shop()
	ceiling := r.ceiling()
	idle := r.rss(r.hub)
	r.settle()

	mark, cpu, begun := r.audit(), r.cpu(), time.Now()
	everybody := intstr.FromString("100%")
	crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: placement.PlacementSpec{
		ResourceSelectors: []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: shop}},
		Policy: &placement.PlacementPolicy{Affinity: &placement.Affinity{ClusterAffinity: &placement.ClusterAffinity{
			Required: &placement.ClusterSelector{
				ClusterSelectorTerms: []placement.ClusterSelectorTerm{{
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}},
				}},
			},
		}}},
		Strategy: placement.RolloutStrategy{RollingUpdate: &placement.RollingUpdateConfig{MaxUnavailable: &everybody}},
	}}
	r.check(r.Create(ctx, crp))
	all := r.untilWorks(begun, "0", picked)
	for program, used := range r.cpu() {
		b.Logf("processor time: %6.2f s %s", used-cpu[program], program)
	}
	r.settle()
	writes, kinds := mark.writes(b)
	b.Logf("writes of the placement: %v", kinds)

	mark, begun = r.audit(), time.Now()
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"env":"prod"}}}`))
	r.check(r.Patch(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name(members - 1)}}, label))
	one := r.untilWorks(begun, "0", picked+1)
	r.settle()
	labelWrites, kinds := mark.writes(b)
	b.Logf("writes of the label: %v", kinds)

	begun = time.Now()
	r.check(r.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings-0"}},
		client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"2"}}`))))
	changed := r.untilWorks(begun, "1", picked+1)

	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ceiling, "ceiling/s")
	b.ReportMetric(all.Seconds(), "all-works-s")
	b.ReportMetric(float64(writes), "writes")
	b.ReportMetric(one.Seconds(), "label-s")
	b.ReportMetric(float64(labelWrites), "label-writes")
	b.ReportMetric(changed.Seconds(), "change-s")
	b.ReportMetric((r.rss(r.hub)-idle)*1024/(picked+1), "hub-KiB/work")
}

// shop makes a Namespace that is ten objects with what is in it.
func (r *testRig) shop() string {
	r.b.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	r.check(r.Create(context.Background(), namespace))
	for i := range 9 {
		r.check(r.Create(context.Background(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: fmt.Sprintf("settings-%d", i)}, Data: map[string]string{
				"a": "1", "text": fmt.Sprintf("%01000d", i),
			},
		}))
	}
	return namespace.Name
}

// untilWorks returns how long it took until so many Works have a resource index.
func (r *testRig) untilWorks(begun time.Time, index string, count int) time.Duration {
	r.b.Helper()
	for {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(placement.GroupVersion.WithKind("WorkList"))
		r.check(r.List(context.Background(), list, client.MatchingLabels{placement.LabelResourceIndex: index}))
		if len(list.Items) == count {
			return time.Since(begun)
		}
		if time.Since(begun) > 2*time.Minute {
			r.b.Fatalf("%d Works after two minutes, want %d", len(list.Items), count)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
