package cli

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestDeliveriesAndMembersArePaused(t *testing.T) {
	r := newRig(t)
	admin := of(t, r.Cluster, r.Account(t, "pause-admin", "cluster-admin"))
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "team", Name: name, Annotations: map[string]string{"note": "stays"}}
	}
	bundle, made, orphan := &fleet.Bundle{ObjectMeta: meta("paused-web")}, &fleet.Bundle{ObjectMeta: meta("paused-made")},
		&fleet.Bundle{ObjectMeta: meta("paused-orphan")}
	bundle.Spec.DefaultNamespace = "web"
	made.Labels, orphan.Labels = map[string]string{fleet.LabelRepoName: "paused-shop"}, map[string]string{fleet.LabelRepoName: "gone"}
	repo := &fleet.GitRepo{ObjectMeta: meta("paused-shop"), Spec: fleet.GitRepoSpec{Repo: "https://git.example.com/shop"}}
	cluster := &fleet.Cluster{ObjectMeta: meta("paused-edge")}
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "paused-mc"}}
	member.Spec.Identity = rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "paused-mc"}
	for _, o := range []client.Object{bundle, made, orphan, repo, cluster, member} {
		r.check(r.Create(t.Context(), o))
	}

	admin.says("pause bundles/team/paused-web", "Bundle team/paused-web is paused. What is deployed stays, and nothing changes.\n")
	admin.refused("retry bundles/team/paused-web",
		"Bundle team/paused-web is paused: end that first with muster pause bundles/team/paused-web --undo")
	admin.says("pause bundles/team/paused-web --undo", "Bundle team/paused-web is not paused any more.\n")
	admin.says("retry team/paused-web", "Bundle team/paused-web is deployed again")
	admin.refused("pause bundles/team/paused-made",
		"GitRepo team/paused-shop makes Bundle team/paused-made, and sets its spec: run muster pause repos/team/paused-shop")
	admin.says("pause bundles/team/paused-orphan", "is paused")
	admin.says("pause repos/team/paused-shop", "GitRepo team/paused-shop is paused")
	admin.says("pause team/paused-edge", "Cluster team/paused-edge is paused")
	admin.says("pause paused-mc", "MemberCluster paused-mc is paused")

	for _, o := range []client.Object{bundle, orphan, repo, cluster, member} {
		r.check(r.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	}
	if bundle.Spec.Paused || bundle.Spec.ForceSyncGeneration != 1 || bundle.Spec.DefaultNamespace != "web" ||
		bundle.Annotations["note"] != "stays" {
		t.Errorf("the Bundle is %+v", bundle)
	}
	if !orphan.Spec.Paused || !repo.Spec.Paused || repo.Spec.Repo == "" {
		t.Errorf("the Bundle without a source and the GitRepo are not paused: %+v, %+v", orphan.Spec, repo.Spec)
	}
	for _, o := range []client.Object{cluster, member} {
		if o.GetAnnotations()[fleet.AnnotationPaused] != "true" {
			t.Errorf("%s is not paused: %v", o.GetName(), o.GetAnnotations())
		}
	}
	cluster.Spec.Paused = true
	r.check(r.Update(t.Context(), cluster))
	admin.says("pause team/paused-edge --undo", "Cluster team/paused-edge is not paused any more.\n")
	r.check(r.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	if cluster.Spec.Paused || cluster.Annotations[fleet.AnnotationPaused] != "" || cluster.Annotations["note"] != "stays" {
		t.Errorf("the Cluster is paused still: %+v", cluster)
	}
}
