package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/bench/rig"
	"github.com/muster-fleet/muster/internal/naming"
)

// BenchmarkMembers: 200 MemberClusters are registered at once → all ReadyToJoin; 200 agents
// answer at once → all Joined and Healthy; 200 are deleted at once, and their agents answer →
// all records are gone.
func BenchmarkMembers(b *testing.B) {
	const members = 200
	r := newRig(b)
	ctx := context.Background()
	for r.Get(ctx, types.NamespacedName{Name: naming.MemberSystemNamespace}, &corev1.Namespace{}) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	name := func(i int) string { return fmt.Sprintf("member-%d", i) }
	for i := range members {
		r.check(r.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: name(i)}}))
	}
	ceiling := r.ceiling()
	r.settle()
	mark := r.audit()

	registered := r.all(members, func(i int) error {
		return r.Create(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Spec: clusterv1beta1.MemberClusterSpec{
			Identity: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: naming.MemberSystemNamespace, Name: name(i)},
		}})
	}, clusterv1beta1.ConditionReadyToJoin)
	r.settle()
	writes, _ := mark.writes(b)

	joined := r.all(members, func(i int) error { return r.answer(name(i), metav1.ConditionTrue) }, clusterv1beta1.ConditionHealthy)
	r.settle()
	mark = r.audit()
	begun := time.Now()
	r.each(members, func(i int) error { return r.answer(name(i), metav1.ConditionTrue) })
	beats := time.Since(begun)
	r.settle()
	beatWrites, _ := mark.writes(b)

	begun = time.Now()
	r.each(members, func(i int) error {
		if err := r.Delete(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name(i)}}); err != nil {
			return err
		}
		return rig.Retry(ctx, func() error {
			var report clusterv1beta1.InternalMemberCluster
			if err := r.Get(ctx, types.NamespacedName{Namespace: naming.MemberClusterNamespace(name(i)), Name: name(i)}, &report); err != nil {
				return err
			}
			if report.Spec.State != clusterv1beta1.ClusterStateLeave {
				return fmt.Errorf("not asked yet")
			}
			return r.answer(name(i), metav1.ConditionFalse)
		})
	})
	for {
		var list clusterv1beta1.MemberClusterList
		r.check(r.List(ctx, &list))
		if len(list.Items) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ceiling, "ceiling/s")
	b.ReportMetric(registered.Seconds(), "all-ready-s")
	b.ReportMetric(float64(writes)/members, "writes/member")
	b.ReportMetric(joined.Seconds(), "all-healthy-s")
	b.ReportMetric(beats.Seconds(), "all-beat-s")
	b.ReportMetric(float64(beatWrites)/members, "writes/beat")
	b.ReportMetric(time.Since(begun).Seconds(), "all-gone-s")
}

// each does something for every member at once.
func (r *testRig) each(members int, do func(int) error) {
	r.b.Helper()
	failed := make(chan error, members)
	for i := range members {
		go func() { failed <- do(i) }()
	}
	for range members {
		r.check(<-failed)
	}
}

// all does something for every member at once and returns how long it took until a
// condition was true of all.
func (r *testRig) all(members int, do func(int) error, condition string) time.Duration {
	r.b.Helper()
	begun := time.Now()
	r.each(members, do)
	for {
		var list clusterv1beta1.MemberClusterList
		r.check(r.List(context.Background(), &list))
		count := 0
		for _, mc := range list.Items {
			if meta.IsStatusConditionTrue(mc.Status.Conditions, condition) {
				count++
			}
		}
		if count == members {
			return time.Since(begun)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// answer plays a heartbeat of a KubeFleet member agent.
func (r *testRig) answer(name string, joined metav1.ConditionStatus) error {
	return rig.BeatKubeFleet(context.Background(), r.Client, name, joined)
}
