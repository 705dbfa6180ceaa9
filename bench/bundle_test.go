package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// BenchmarkBundle: one Bundle for 300 Clusters → 300 BundleDeployments; 300 agents report at once → the Bundle is ready; the label of one
// Cluster changes → one BundleDeployment.
func BenchmarkBundle(b *testing.B) {
	const clusters = 300
	r := newRig(b)
	ctx := context.Background()
	name := func(i int) string { return fmt.Sprintf("cluster-%d", i) }
	r.each(clusters, func(i int) error {
		return r.Create(ctx, &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.workspace, Name: name(i), Labels: map[string]string{"env": "dev"}}, Spec: fleet.ClusterSpec{ClientID: name(i)},
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
	deployments := r.deployments(clusters)
	written := time.Since(begun)
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
	r.deployments(clusters - 1)
	r.settle()
	_, relabel := mark.writes(b)
	b.Logf("writes of the changed label: %v", relabel)

	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ceiling, "ceiling/s")
	b.ReportMetric(clusters/written.Seconds(), "deployments/s")
	b.ReportMetric(100*clusters/written.Seconds()/ceiling, "%ceiling")
	b.ReportMetric(written.Seconds(), "all-written-s")
	b.ReportMetric(ready.Seconds(), "all-ready-s")
	b.ReportMetric(float64(reports["patch bundles status"]), "bundle-status-writes")
	b.ReportMetric(r.rss(r.hub)-before, "MiB-more")
}

// deployments waits until there are so many deployments, and returns them.
func (r *rig) deployments(count int) []fleet.BundleDeployment {
	r.b.Helper()
	for {
		var list fleet.BundleDeploymentList
		r.check(r.List(context.Background(), &list))
		if len(list.Items) == count {
			return list.Items
		}
		time.Sleep(10 * time.Millisecond)
	}
}
