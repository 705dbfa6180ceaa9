package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestAllObjectsInTheWayOfAHubAreNamedBeforeOneIsWritten(t *testing.T) {
	t.Parallel()
	cluster := withPods(t, "cli-taken")
	admin, h, ctx := contexts(t, cluster), their{t, cluster, cluster.Client(t)}, t.Context()
	h.namespaces(naming.SystemNamespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.SystemNamespace, Name: "fleet-controller"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleet-controller"}}
	agents := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleet-content"}}
	for _, o := range []client.Object{account, role, agents} {
		h.check(h.Create(ctx, o))
	}
	const mark = " --overwrite meta.helm.sh/release-name=fleet meta.helm.sh/release-namespace=cattle-fleet-system"
	admin.refused("init", "kubectl --context cli-taken delete clusterrole fleet-content",
		"kubectl --context cli-taken -n cattle-fleet-system annotate serviceaccounts fleet-controller"+mark,
		"kubectl --context cli-taken annotate clusterroles.rbac.authorization.k8s.io fleet-controller"+mark)
	if err := h.Get(ctx, client.ObjectKey{Name: "clusters.fleet.cattle.io"}, kube.Metadata(definitions)); !apierrors.IsNotFound(err) {
		t.Errorf("something is installed: %v", err)
	}
	h.check(h.Delete(ctx, agents))
	for _, o := range []client.Object{account, role} {
		o.SetLabels(map[string]string{labelMadeBy: "Helm"})
		o.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "fleet", "meta.helm.sh/release-namespace": naming.SystemNamespace})
		h.check(h.Update(ctx, o))
	}
	admin.runs("init", "The hub is running.")
}

// TestADefinitionOfAnotherReleaseIsInNobodysWay has the definition that the agent of a
// MemberCluster left, which its chart keeps.
func TestADefinitionOfAnotherReleaseIsInNobodysWay(t *testing.T) {
	kindOfDefinitions := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	crd := func(name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kindOfDefinitions)
		o.SetName(name)
		o.SetLabels(map[string]string{labelMadeBy: "Helm"})
		o.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "member-agent", "meta.helm.sh/release-namespace": "default"})
		return o
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kindOfDefinitions, meta.RESTScopeRoot)
	objects := []*unstructured.Unstructured{
		crd("appliedworks.placement.kubernetes-fleet.io"), crd("clusterprofiles.multicluster.x-k8s.io"), crd("clusters.fleet.cattle.io"),
	}
	scheme := runtime.NewScheme()
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper)
	for _, o := range objects {
		builder.WithObjects(o.DeepCopy())
	}
	c := &checked{access: newAccess(), Client: builder.Build()}
	_, commands, err := c.importedAmong(t.Context(), objects, agentRelease)
	if err != nil || len(commands) != 1 || !strings.Contains(commands[0], "clusters.fleet.cattle.io") {
		t.Errorf("in the way are %v: %v", commands, err)
	}
}
