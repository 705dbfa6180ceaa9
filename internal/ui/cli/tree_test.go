package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

func TestTreeShowsWhatStandsBehindAMember(t *testing.T) {
	r := newRig(t)
	t.Setenv("LC_ALL", "C.UTF-8")
	ctx := context.Background()
	admin := of(t, r.Cluster, r.Account(t, "cli-admin", "cluster-admin"))
	r.check(r.Create(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "tall"}}))
	r.check(r.Create(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "oak"}, Spec: clusterv1beta1.MemberClusterSpec{
		Identity: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "team", Name: "nobody"}}}))
	namespace := naming.MemberNamespace("team", "tall")
	testkube.Eventually(t, "the namespace is there", func() error {
		return r.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	})
	bad := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}}
	r.check(r.Create(ctx, bad))
	r.check(r.Status().Patch(ctx, bad,
		client.RawPatch("application/merge-patch+json", mustJSON(t, map[string]any{"status": fleet.BundleDeploymentStatus{
			Conditions: []fleet.Condition{{Type: "Deployed", Status: "False", Reason: "ReleaseConflict", Message: "it is of Helm"}}}}))))
	admin.says("tree team/tall",
		"Cluster team/tall  Awaited\n└─ Namespace "+namespace+"  Active\n   ├─ identity ServiceAccount agent  missing\n",
		"   ├─ report InternalMemberCluster tall  missing\n", "   ├─ heartbeat Lease heartbeat  missing\n", "   └─ BundleDeployment shop  ")
	admin.says("tree oak", "MemberCluster oak  ", "├─ Namespace fleet-member-oak  ", "└─ identity ServiceAccount team/nobody  missing\n")
	testkube.Eventually(t, "what the hub has of the MemberCluster is shown", func() error {
		out, said, err := admin.run("tree", "oak")
		if err == nil && (!strings.Contains(out, "Namespace fleet-member-oak  Active\n") ||
			!strings.Contains(out, "─ report InternalMemberCluster oak  asks to ")) {
			err = fmt.Errorf("it shows\n%s%s", out, said)
		}
		return err
	})
	t.Setenv("LC_ALL", "C")
	admin.says("tree team/tall", "`- Namespace ")
	admin.refused("tree nothing", "there is no nothing among the members")

	clusters := of(t, r.Cluster, r.Account(t, "sees-clusters-only", "sees-clusters-only"))
	r.check(r.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sees-clusters-only"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"fleet.cattle.io"}, Resources: []string{"clusters"}, Verbs: []string{"list"}}}}))
	testkube.Eventually(t, "the right counts", func() error { _, _, err := clusters.run("tree", "team/tall"); return err })
	clusters.says("tree team/tall", "Namespace "+namespace+"  you may not see it\n", "BundleDeployments  you may not see it\n")
}

func TestATerminalThatShowsNoMoreThanASCIIIsToldByTheLocale(t *testing.T) {
	for _, row := range []struct {
		variables map[string]string
		want      bool
	}{
		{nil, false}, {map[string]string{"LANG": "en_US.UTF-8"}, true}, {map[string]string{"LANG": "C"}, false},
		{map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, false}, {map[string]string{"LC_CTYPE": "de_DE.utf8"}, true},
	} {
		if got := speaksUTF8(func(name string) string { return row.variables[name] }); got != row.want {
			t.Errorf("%v: %t", row.variables, got)
		}
	}
}
