package agent

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// TestAMemberLeavesWhileItsAgentIsUpgraded has the real deployer fail an upgrade, because there is
// no Content, and the member leave with the policy Delete meanwhile.
func TestAMemberLeavesWhileItsAgentIsUpgraded(t *testing.T) {
	config := startCluster(t)
	hub, member := newMemberHub(t, config, "upgrading"), newGivenMember(t, config)
	hub.apply()
	hub.bind(hub.namespace, "agent", naming.MemberServiceAccount, rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"bundledeployments", "bundledeployments/status"},
		Verbs: []string{"get", "list", "watch", "patch"},
	})
	binding, err := hub.kube.RbacV1().RoleBindings(hub.namespace).Get(t.Context(), "agent", metav1.GetOptions{})
	check(t, err)
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: hub.account, Namespace: hub.workspace}}
	_, err = hub.kube.RbacV1().RoleBindings(hub.namespace).Update(t.Context(), binding, metav1.UpdateOptions{})
	check(t, err)
	member.mayDeliver()
	member.give(hub.own())
	_, err = member.kube.CoreV1().Secrets(member.namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "release", Labels: map[string]string{"owner": "helm", "name": naming.MemberAgentChart},
	}}, metav1.CreateOptions{})
	check(t, err)
	release := member.namespace + "/" + naming.MemberAgentChart
	kubeconfig := filepath.Join(testkube.Start(t, "agent").Dir, "kubeconfig")
	agent := member.start(member.membership(hub, func(m *Membership) { m.Release = release }), func(o *Options) {
		o.Delivery = Delivery{Path: testkube.Build(t, "muster-deployer"), Arguments: []string{
			"--kubeconfig=" + kubeconfig, "--namespace=" + member.namespace, "--holder=" + member.namespace, "--agent-release=" + release,
		}}
	})
	agent.untilJoined()
	agent.until("it reports that the hub can upgrade it", func() error {
		report, err := hub.reports().Get(t.Context(), hub.name, metav1.GetOptions{})
		if err != nil || !slices.Contains(report.Status.Features, clusterv1beta1.FeatureManagedAgent) {
			return fmt.Errorf("it reports %v: %v", report.Status.Features, err)
		}
		return nil
	})

	sent := &fleet.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: naming.MemberAgentChart, Labels: map[string]string{fleet.LabelAgent: "v1"}},
		Spec:       fleet.BundleDeploymentSpec{DeploymentID: "s-missing:1"},
	}
	_, err = hub.deployments().Create(t.Context(), sent, metav1.CreateOptions{})
	check(t, err)
	agent.until("the upgrade fails, with the cause", func() error {
		found, err := hub.deployments().Get(t.Context(), sent.Name, metav1.GetOptions{})
		if err != nil || delivery.StateOf(found) != fleet.StateErrApplied {
			return fmt.Errorf("its status is %+v: %v", found.Status, err)
		}
		return containsAll(found.Status.Conditions[0].Message, "s-missing")
	})
	hub.patchReport(`{"spec":{"state":"Leave","leavePolicy":"Delete"}}`)
	hub.reported(agent, "False", "InternalMemberClusterLeft")
}
