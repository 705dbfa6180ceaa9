package hub_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

// hosted installs both parts of the agent of a MemberCluster.
func (r *registered) hosted() *hosted {
	r.t.Helper()
	h := r.memberAndHost()
	h.account, h.deployment = "member-agent-sa", hostedRelease+"-member-agent"
	given := r.membership(h.on, h.namespace)
	values := func(part map[string]any) map[string]any {
		return map[string]any{
			"config":    map[string]any{"hubURL": given.Server, "memberClusterName": r.name, "hubCA": given.CA},
			"secret":    map[string]any{"name": given.SecretName, "namespace": given.SecretNamespace},
			"namespace": h.namespace, "hosted": part,
		}
	}
	h.on.helmInstall("member-agent", "member-agent", h.namespace, values(map[string]any{"part": "member"}))
	h.host.helmInstall("member-agent", hostedRelease, h.hostNamespace, values(map[string]any{
		"part": "host", "memberKubeconfigSecret": hostedRelease}))
	return h
}

func TestAHostedAgentOfAMemberClusterJoinsAndLeaves(t *testing.T) {
	f := newFixture(t)
	r := f.register("hosted", every(10))
	r.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	h := r.hosted()
	h.give(h.on.cluster.Kubeconfig(t, h.bearer("first")))
	h.run()
	r.until("Joined", metav1.ConditionTrue, "MemberClusterJoined")
	r.until("AgentUpToDate", metav1.ConditionFalse, "CannotBeManaged")
	var report clusterv1beta1.InternalMemberCluster
	f.check(f.get(&report, r.namespaceName(), r.name))
	if features := report.Status.Features; slices.Contains(features, clusterv1beta1.FeatureManagedAgent) ||
		!slices.Contains(features, clusterv1beta1.FeatureHosted) {
		t.Errorf("the agent offers %v", features)
	}
	record := r.record()
	f.uninstallAgent(&record)
	f.check(f.Delete(context.Background(), &record))
	r.untilGone()
	h.on.eventually("the part on the member is gone", func() error {
		if err := gone(h.on.get(&corev1.ConfigMap{}, h.namespace, naming.HostedAgentConfigMap)); err != nil {
			return err
		}
		return gone(h.on.get(&rbacv1.ClusterRole{}, "", "member-agent-delivery"))
	})
	f.check(h.on.get(&corev1.Secret{}, h.namespace, tokenSecret)) // the user's
}
