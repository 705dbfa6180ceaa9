package hub_test

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestTextThatIsNoNamespaceBlocksNoOthersImport has a tenant give Clusters the ID of a cluster
// that another tenant imports, with agent namespaces that lead elsewhere in a path. The
// definition refuses them in the spec. Clusters of an earlier version may have them all the
// same, and a status may.
func TestTextThatIsNoNamespaceBlocksNoOthersImport(t *testing.T) {
	i := newAlone(t, "").importing(nil)
	ctx := context.Background()
	tenant := i.fixture.neighbour()
	texts := []string{"a/b", "..", "%2e%2e", "a?b=c", "A"}
	claims := func(name, namespace string) *fleet.Cluster {
		return &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant.workspace, Name: name},
			Spec:       fleet.ClusterSpec{ClientID: i.clusterID, AgentNamespace: namespace},
		}
	}
	for _, text := range texts {
		if err := tenant.Create(ctx, claims("refused", text), client.DryRunAll); !apierrors.IsInvalid(err) {
			t.Errorf("a Cluster with agentNamespace %q is created: %v", text, err)
		}
	}

	definition := &apiextensionsv1.CustomResourceDefinition{}
	i.check(i.get(definition, "", "clusters.fleet.cattle.io"))
	i.change(definition, func() {
		for v := range definition.Spec.Versions {
			spec := definition.Spec.Versions[v].Schema.OpenAPIV3Schema.Properties["spec"]
			namespace := spec.Properties["agentNamespace"]
			namespace.Pattern = ""
			spec.Properties["agentNamespace"] = namespace
		}
	})
	t.Cleanup(func() { i.cluster.InstallCRDs(t) })
	for n, text := range texts {
		i.eventually("a Cluster of an earlier version is there", func() error {
			return tenant.Create(ctx, claims(fmt.Sprintf("spec-%d", n), text))
		})
		said := claims(fmt.Sprintf("status-%d", n), "")
		i.check(tenant.Create(ctx, said))
		i.check(writeStatus(tenant, said, fmt.Sprintf(`{"agent":{"namespace":%q}}`, text)))
	}
	i.cluster.InstallCRDs(t)

	i.begin()
	i.imported("my-cluster", "Imported")
}
