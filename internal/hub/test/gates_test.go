package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// namespaceEditor may change these namespaces and whatever is in them of the inventory.
func (f fixture) namespaceEditor(names ...string) client.Client {
	f.t.Helper()
	ctx, meta := context.Background(), metav1.ObjectMeta{Name: f.workspace + "-namespaces"}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: names, Verbs: []string{"get", "update", "patch"}},
	}}
	f.check(f.Create(ctx, role))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "namespaces"}}
	f.check(f.Create(ctx, account))
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: to("ClusterRole", meta.Name), Subjects: []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Namespace: f.workspace, Name: account.Name},
	}}
	f.check(f.Create(ctx, binding))
	f.t.Cleanup(func() { f.check(kube.Delete(ctx, f.Client, binding, role)) })
	bearer, err := kube.RequestToken(ctx, f.SubResource("token"), account, time.Hour)
	f.check(err)
	return f.as(bearer)
}

// TestTheNamespaceOfTheInventoryIsNoMembers plays a user who may change that namespace, and then an
// administrator who marks it by mistake. The hub must not delete it as one without a Cluster.
func TestTheNamespaceOfTheInventoryIsNoMembers(t *testing.T) {
	f := newAlone(t, "")
	m := f.register("kept")
	m.eventually("the agent answers", func() error { return m.answer(metav1.ConditionTrue, "") })
	f.profile(m.name, "True MemberClusterJoined", "True AgentHealthy")
	var before corev1.Namespace
	f.check(f.get(&before, "", inventoryNamespace))

	editor := f.namespaceEditor(inventoryNamespace)
	missing := map[string]any{fleet.AnnotationClusterNamespace: f.workspace, fleet.LabelCluster: "missing"}
	owner := map[string]any{
		"apiVersion": "cluster.kubernetes-fleet.io/v1beta1", "kind": "MemberCluster", "name": "missing", "uid": "missing", "controller": true,
	}
	for what, metadata := range map[string]map[string]any{
		"the name of a Cluster that does not exist":        {"annotations": missing},
		"a MemberCluster that does not exist as its owner": {"ownerReferences": []any{owner}},
		"no mark of the hub":                               {"labels": map[string]any{fleet.LabelManaged: nil}},
	} {
		f.denied(what, func() error { return f.patchNamespace(editor, inventoryNamespace, metadata) })
	}

	f.check(f.patchNamespace(f.Client, inventoryNamespace, map[string]any{"annotations": missing}))
	stray := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "stray-", Labels: map[string]string{fleet.LabelManaged: "true"},
		Annotations: map[string]string{fleet.AnnotationClusterNamespace: f.workspace, fleet.LabelCluster: "missing"},
	}}
	f.check(f.Create(context.Background(), stray))
	f.eventually("a namespace without a Cluster is deleted", func() error {
		var now corev1.Namespace
		if err := f.get(&now, "", stray.Name); err == nil && now.DeletionTimestamp == nil {
			return fmt.Errorf("it is %s", now.Status.Phase)
		} else if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	var after corev1.Namespace
	f.check(f.get(&after, "", inventoryNamespace))
	if after.UID != before.UID || after.DeletionTimestamp != nil {
		t.Errorf("it is another one, or goes: %+v", after.ObjectMeta)
	}
	f.check(f.patchNamespace(f.Client, inventoryNamespace, map[string]any{
		"annotations": map[string]any{fleet.AnnotationClusterNamespace: nil, fleet.LabelCluster: nil},
	}))
}

func (f fixture) patchNamespace(by client.Client, name string, metadata map[string]any) error {
	f.t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	f.check(err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return by.Patch(context.Background(), namespace, client.RawPatch(types.MergePatchType, patch))
}

// TestTheKubeconfigOfTheHubsOwnClusterIsOnlyItsOwn plays a tenant elsewhere who names the Secret,
// and a holder of a token beside it who asks to be the Cluster local.
func TestTheKubeconfigOfTheHubsOwnClusterIsOnlyItsOwn(t *testing.T) {
	f := newAlone(t, "")
	f.cluster.InstallTemplate(t, "fleet/templates/bootstrap.yaml")
	local := f
	local.workspace = "cluster-hub-" + f.workspace // the prefix passes the list of namespaces with kubeconfigs
	f.check(f.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: local.workspace}}))
	agentNamespace := f.namespace("agent-")
	f.configure(fmt.Sprintf(`{"bootstrap":{"namespace":%q,"agentNamespace":%q}}`, local.workspace, agentNamespace))
	hubs := importing{fixture: local, down: f.cluster, remote: f.Client, agentNamespace: agentNamespace}
	before := hubs.imported("local", "Imported")

	tenant := f.tenantWithoutApprove()
	victim := f.namespace("agent-")
	for _, name := range []string{"local", "web"} {
		f.check(tenant.Create(context.Background(), &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: name},
			Spec: fleet.ClusterSpec{
				KubeConfigSecret: "local-cluster", KubeConfigSecretNamespace: local.workspace, AgentNamespace: victim,
			},
		}))
		importing{fixture: f}.imported(name, "ConsentMissing")
	}

	_, values := local.token("new-token", "")
	for _, clientID := range []string{"local", before.Spec.ClientID} {
		r := local.mustAsk(values, local.signed(local.keyOf("thief"), values, clientID, answerKey(t)))
		local.eventually("the request is decided", func() error {
			if err := local.get(&r, r.Namespace, r.Name); err != nil {
				return err
			}
			if r.Status.State == "" {
				return fmt.Errorf("it has no state")
			}
			return nil
		})
		if r.Status.State == fleet.RegistrationGranted && r.Status.ClusterName == "local" {
			t.Errorf("a request for %q became the Cluster local", clientID)
		}
	}
	var after fleet.Cluster
	f.check(f.get(&after, local.workspace, "local"))
	if after.UID != before.UID || after.Spec.ClientID != before.Spec.ClientID ||
		after.Annotations[fleet.AnnotationAgentKey] != before.Annotations[fleet.AnnotationAgentKey] {
		t.Errorf("it was %+v, and is %+v", before.ObjectMeta, after.ObjectMeta)
	}
	if err := f.get(&corev1.ConfigMap{}, victim, naming.AgentConfigMap); !apierrors.IsNotFound(err) {
		t.Errorf("an agent was installed for the tenant: %v", err)
	}
}
