package agent

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

// installed has what Helm makes of the chart: a Deployment, and the right to deliver with the verbs
// given.
func (m *testMember) installed(verbs ...string) func(*Options) {
	m.t.Helper()
	ctx := m.t.Context()
	marked := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}, Annotations: map[string]string{
				"meta.helm.sh/release-name": "fleet-agent", "meta.helm.sh/release-namespace": m.namespace,
			}}
	}
	labels := map[string]string{"app": "fleet-agent"}
	_, err := m.kube.AppsV1().Deployments(m.namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: marked("fleet-agent"), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "agent", Image: "none"}}},
			},
		},
	}, metav1.CreateOptions{})
	check(m.t, err)
	role := &rbacv1.ClusterRole{ObjectMeta: marked(m.namespace + "-delivery"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: verbs}, {NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
	}}
	_, err = m.kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	check(m.t, err)
	_, err = m.kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: marked(role.Name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "fleet-agent", Namespace: m.namespace}},
	}, metav1.CreateOptions{})
	check(m.t, err)
	return func(o *Options) { o.Deployment = "fleet-agent" }
}

// joinsInstalled is a hub, and a member whose installed agent has joined.
func joinsInstalled(t *testing.T, change func(*Options), verbs ...string) (*testHub, *testMember, *running) {
	t.Helper()
	hub, member := newCluster(t)
	hub.serve(hub.grant)
	member.bootstrap(hub.values())
	agent := member.start(member.installed(verbs...), change)
	agent.untilJoined()
	return hub, member, agent
}

// untilRemoved waits until Kubernetes has deleted the agent's objects.
func (m *testMember) untilRemoved(agent *running) {
	m.t.Helper()
	agent.until("the agent is removed", func() error {
		ctx := context.Background()
		_, err := m.kube.AppsV1().Deployments(m.namespace).Get(ctx, "fleet-agent", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the Deployment: %v", err)
		}
		_, err = m.kube.RbacV1().ClusterRoles().Get(ctx, m.namespace+"-delivery", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the ClusterRole: %v", err)
		}
		if m.secret(naming.AgentSecret) != nil || m.secret(naming.AgentKeySecret) != nil {
			return fmt.Errorf("the agent's Secrets are left")
		}
		return nil
	})
}

const asksToUninstall = `{"spec":{"state":"Leave","leavePolicy":"Orphan","uninstallAgent":true}}`

func nothing(*Options) {}

func TestAnAgentRemovesItselfAfterItHasLeft(t *testing.T) {
	hub, member, agent := joinsInstalled(t, nothing, "*")
	_, err := member.kube.CoreV1().ConfigMaps(member.namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "of-a-user"}}, metav1.CreateOptions{})
	check(t, err)
	hub.patchReport(asksToUninstall)
	hub.reported(agent, "False", "InternalMemberClusterLeft")
	member.untilRemoved(agent)
	if _, err := member.kube.CoreV1().ConfigMaps(member.namespace).Get(t.Context(), "of-a-user", metav1.GetOptions{}); err != nil {
		t.Errorf("the ConfigMap of a user: %v", err)
	}
}

// TestAnAgentThatIsKilledBeforeItRemovesItselfDoesSoAlthoughTheHubHasForgottenIt denies the last
// deletion until the agent has lost its access to the hub.
func TestAnAgentThatIsKilledBeforeItRemovesItselfDoesSoAlthoughTheHubHasForgottenIt(t *testing.T) {
	hub, member, agent := joinsInstalled(t, nothing, "get", "list", "watch", "create", "update", "patch")
	// The owner of an object may be changed only with the right to delete it.
	name := member.namespace + "-delivery"
	role, err := member.kube.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
	check(t, err)
	all := []string{"deployments", "secrets", "clusterrolebindings", "leases", "configmaps", "serviceaccounts"}
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: all, Verbs: []string{"delete"}})
	_, err = member.kube.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{})
	check(t, err)
	hub.patchReport(asksToUninstall)
	hub.reported(agent, "False", "InternalMemberClusterLeft")
	agent.until("the deletion fails", func() error { return containsAll(agent.lines(), "Failed to remove the agent", "clusterroles") })
	agent.stop()
	hub.revoke()
	role, err = member.kube.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
	check(t, err)
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"delete"}})
	_, err = member.kube.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{})
	check(t, err)
	again := member.start(func(o *Options) { o.Deployment = "fleet-agent" })
	member.untilRemoved(again)
}

func TestWhyAnAgentCannotRemoveItselfIsReportedUntilNobodyAsks(t *testing.T) {
	hub, member, agent := joinsInstalled(t, nothing, "*")
	deployments := member.kube.AppsV1().Deployments(member.namespace)
	deployment, err := deployments.Get(t.Context(), "fleet-agent", metav1.GetOptions{})
	check(t, err)
	deployment.Annotations = nil
	_, err = deployments.Update(t.Context(), deployment, metav1.UpdateOptions{})
	check(t, err)
	hub.patchReport(asksToUninstall)
	hub.reported(agent, "True", "Leaving", "the agent cannot be removed",
		"has no marks of a Helm release", "take the annotation muster/uninstall-agent off")
	hub.patchReport(`{"spec":{"uninstallAgent":null}}`)
	hub.reported(agent, "False", "InternalMemberClusterLeft")
	if _, err := deployments.Get(t.Context(), "fleet-agent", metav1.GetOptions{}); err != nil {
		t.Errorf("the agent is gone: %v", err)
	}
}

func TestAnAgentWithoutDeliveryNeitherOffersToRemoveItselfNorDoes(t *testing.T) {
	hub, member, agent := joinsInstalled(t, func(o *Options) { o.Delivery = Delivery{Off: true} }, "*")
	hub.patchReport(asksToUninstall)
	hub.reported(agent, "False", "InternalMemberClusterLeft")
	report, err := hub.report()
	check(t, err)
	if slices.Contains(report.Status.Features, clusterv1beta1.FeatureUninstall) {
		t.Errorf("it offers %v", report.Status.Features)
	}
	if _, err := member.kube.AppsV1().Deployments(member.namespace).Get(t.Context(), "fleet-agent", metav1.GetOptions{}); err != nil {
		t.Errorf("the agent is gone: %v", err)
	}
}
