package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// BenchmarkBundle: one Bundle for 300 Clusters → 300 BundleDeployments; 300 agents report at once →
// the Bundle is ready; the label of one Cluster changes → one BundleDeployment.
func BenchmarkBundle(b *testing.B) {
	const clusters = 300
	r := newRig(b)
	ctx := context.Background()
	name := func(i int) string { return fmt.Sprintf("cluster-%d", i) }
	r.each(clusters, func(i int) error {
		return r.Create(ctx, &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: name(i), Labels: map[string]string{"env": "dev"}},
			Spec:       fleet.ClusterSpec{ClientID: name(i)},
		})
	})
	r.settle()
	ceiling := r.ceiling()
	r.settle()
	mark, before := r.audit(), r.rss(r.hub)

	begun := time.Now()
	r.check(r.Create(ctx, &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: "app"}, Spec: fleet.BundleSpec{
		Resources: []fleet.BundleResource{{Name: "cm.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}},
		Targets:   []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}}}},
	}}))
	r.awaitDeployments(clusters)
	written := time.Since(begun)
	var list fleet.BundleDeploymentList
	r.check(r.List(ctx, &list))
	deployments := list.Items
	r.settle()
	_, kinds := mark.writes(b)
	b.Logf("writes of the rollout: %v", kinds)

	mark, begun = r.audit(), time.Now()
	r.each(clusters, func(i int) error {
		patch := fmt.Sprintf(`{"status":{"appliedDeploymentID":%q,"ready":true,"nonModified":true}}`, deployments[i].Spec.DeploymentID)
		return r.Status().Patch(ctx, &deployments[i], client.RawPatch(types.MergePatchType, []byte(patch)))
	})
	want := fmt.Sprintf("%d/%d", clusters, clusters)
	for bundle := (fleet.Bundle{}); bundle.Status.Display.ReadyClusters != want; time.Sleep(10 * time.Millisecond) {
		r.check(r.Get(ctx, types.NamespacedName{Namespace: r.workspace, Name: "app"}, &bundle))
	}
	ready := time.Since(begun)
	r.settle()
	_, reports := mark.writes(b)
	b.Logf("writes of the reports: %v", reports)

	mark = r.audit()
	r.check(r.Patch(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: name(0)}},
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"env":"prod"}}}`))))
	r.awaitDeployments(clusters - 1)
	r.settle()
	_, relabel := mark.writes(b)
	b.Logf("writes of the changed label: %v", relabel)

	of := r.deploymentCeiling(deployments[0])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(of, "deployments-ceiling/s")
	b.ReportMetric(100*clusters/written.Seconds()/of, "%deployments-ceiling")
	b.ReportMetric(ceiling, "ceiling/s")
	b.ReportMetric(clusters/written.Seconds(), "deployments/s")
	b.ReportMetric(100*clusters/written.Seconds()/ceiling, "%ceiling")
	b.ReportMetric(written.Seconds(), "all-written-s")
	b.ReportMetric(ready.Seconds(), "all-ready-s")
	b.ReportMetric(float64(reports["patch bundles status"]), "bundle-status-writes")
	b.ReportMetric(r.rss(r.hub)-before, "MiB-more")
}

// awaitDeployments waits until there are so many deployments, asking for their number only.
func (r *testRig) awaitDeployments(count int) {
	r.b.Helper()
	for {
		var list fleet.BundleDeploymentList
		r.check(r.List(context.Background(), &list, client.Limit(1)))
		more := 0
		if list.RemainingItemCount != nil {
			more = int(*list.RemainingItemCount)
		}
		if len(list.Items)+more == count {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// deploymentCeiling is how many BundleDeployments like this one the API server creates in a
// second with 32 writers.
func (r *testRig) deploymentCeiling(like fleet.BundleDeployment) float64 {
	r.b.Helper()
	const writers, each = 32, 30
	begun := time.Now()
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				o := &fleet.BundleDeployment{
					ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: fmt.Sprintf("ceiling-%d-%d", w, i)}, Spec: like.Spec,
				}
				o.Labels = map[string]string{"app": "x", "b": "y", "c": "z", "d": "a", "e": "b", "f": "c"}
				if err := r.Create(context.Background(), o); err != nil {
					r.b.Error(err)
				}
			}
		})
	}
	group.Wait()
	return writers * each / time.Since(begun).Seconds()
}
