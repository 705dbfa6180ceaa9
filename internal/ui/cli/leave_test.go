package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestOnlyAReportOfAnotherAgentIsKubeFleets(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1beta1.AddToScheme, fleet.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
	said := func(version string, agents ...clusterv1beta1.AgentStatus) *clusterv1beta1.InternalMemberCluster {
		return &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-edge", Name: "edge"},
			Status: clusterv1beta1.InternalMemberClusterStatus{AgentVersion: version, AgentStatus: agents}}
	}
	agent := clusterv1beta1.AgentStatus{Type: clusterv1beta1.MemberAgent}
	for name, row := range map[string]struct {
		record client.Object
		report *clusterv1beta1.InternalMemberCluster
		want   bool
	}{
		"KubeFleet's agent has reported":   {mc, said("", agent), true},
		"Muster's agent has reported":      {mc, said("v1.0.0", agent), false},
		"no agent has reported":            {mc, said(""), false},
		"there is no report":               {mc, said("", agent), false},
		"it is a Cluster of Rancher Fleet": {&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}, said("", agent), false},
	} {
		builder := fake.NewClientBuilder().WithScheme(scheme)
		if name != "there is no report" {
			builder.WithObjects(row.report)
		}
		if got := hasKubeFleetsAgent(t.Context(), builder.Build(), row.record); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestLeaveDeletesOnlyTheAccountThatJoinMade offers accounts of other origins under its name.
func TestLeaveDeletesOnlyTheAccountThatJoinMade(t *testing.T) {
	scheme := newAccess().scheme
	member := func(name, account string) *clusterv1beta1.MemberCluster {
		mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		mc.Spec.Identity = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "fleet-system", Name: account}
		return mc
	}
	account := func(label string) *corev1.ServiceAccount {
		made := accountOfMember("edge")
		made.UID, made.Labels = "1", map[string]string{labelMadeBy: label}
		return made
	}
	const own = "edge-hub-cluster-access"
	for name, row := range map[string]struct {
		left    *clusterv1beta1.MemberCluster
		objects []client.Object
		goes    bool
		says    string
	}{
		"the account of join":          {member("edge", own), []client.Object{account(madeByUs)}, true, "is deleted"},
		"an account of another origin": {member("edge", own), []client.Object{account("argocd")}, false, ""},
		"the account of two members": {
			member("edge", own), []client.Object{account(madeByUs), member("b", own)}, false, "another MemberCluster",
		},
		"a member of another identity": {member("edge", "robot"), []client.Object{account(madeByUs)}, false, ""},
	} {
		hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(row.objects...).Build()
		var out strings.Builder
		c := &changer{IOStreams: genericiooptions.IOStreams{Out: &out}, access: newAccess()}
		if err := c.removeAccount(t.Context(), hub, row.left); err != nil {
			t.Fatal(err)
		}
		err := hub.Get(t.Context(), client.ObjectKeyFromObject(accountOfMember("edge")), &corev1.ServiceAccount{})
		if apierrors.IsNotFound(err) != row.goes || !strings.Contains(out.String(), row.says) || row.says == "" && out.Len() > 0 {
			t.Errorf("%s: %v, it says %q", name, err, out.String())
		}
	}
}
