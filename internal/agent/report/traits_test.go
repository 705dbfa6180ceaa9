package report

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/kubeclient"
)

func cloudNode(name, providerID, architecture string, labels map[string]string, capacity ...string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	node.Spec.ProviderID, node.Status.NodeInfo.Architecture, node.Status.Capacity = providerID, architecture, list(capacity...)
	return node
}

func TestFactsOfNodes(t *testing.T) {
	for what, row := range map[string]struct {
		version string
		nodes   []any
		want    map[string]string
	}{
		"a cluster of Amazon": {"v1.35.1-eks-abc", []any{
			cloudNode("a", "aws:///eu-west-1a/i-1", "amd64", map[string]string{
				"topology.kubernetes.io/region": "eu-west-1", "topology.kubernetes.io/zone": "eu-west-1a",
				"node.kubernetes.io/instance-type": "m5.large", "eks.amazonaws.com/nodegroup": "web", "secret": "not read",
			}, "cpu", "2"),
			cloudNode("b", "aws:///eu-west-1b/i-2", "arm64", map[string]string{
				"topology.kubernetes.io/region": "eu-west-1", "topology.kubernetes.io/zone": "eu-west-1b",
				"node.kubernetes.io/instance-type": "g5.xlarge", "eks.amazonaws.com/nodegroup": "gpu",
			}, "nvidia.com/gpu", "4", "hugepages-2Mi", "1", "attachable.kubernetes.io/x", "3", "example.com/none", "0"),
		}, map[string]string{
			"muster/provider": "aws", "muster/region": "eu-west-1", "muster/zones": "eu-west-1a,eu-west-1b", "muster/distribution": "eks",
			"muster/architectures": "amd64,arm64", "muster/node-pools": "gpu,web", "muster/extended-resources": "nvidia.com/gpu=4",
			"muster/node-pools/gpu/count": "1", "muster/node-pools/web/count": "1",
			"muster/instance-types/m5.large/count": "1", "muster/instance-types/g5.xlarge/count": "1",
		}},
		"a cluster of Azure has the names of KubeFleet's agents, too": {"v1.35.1", []any{
			cloudNode("a", "azure:///subscriptions/x", "amd64", map[string]string{
				"kubernetes.azure.com/cluster": "x", "kubernetes.azure.com/agentpool": "np1", "node.kubernetes.io/instance-type": "Standard_D2s_v5",
			}),
		}, map[string]string{
			"muster/provider": "azure", "muster/distribution": "aks", "muster/architectures": "amd64", "muster/node-pools": "np1",
			"muster/node-pools/np1/count": "1", "muster/instance-types/Standard_D2s_v5/count": "1",
			"kubernetes.azure.com/vm-sizes/Standard_D2s_v5/count": "1",
		}},
		"of k3s, the provider is not the cloud": {"v1.35.1+k3s1", []any{cloudNode("a", "k3s://a", "arm64", nil)},
			map[string]string{"muster/distribution": "k3s", "muster/architectures": "arm64"}},
		"kind": {"v1.35.1", []any{cloudNode("a", "kind://docker/x/a", "amd64", nil)},
			map[string]string{"muster/provider": "kind", "muster/distribution": "kind", "muster/architectures": "amd64"}},
		"nodes that say nothing": {"v1.35.1", nodeList("a"), map[string]string{}},
	} {
		t.Run(what, func(t *testing.T) {
			n := newNodes(make(chan struct{}, 1))
			var stripped []any
			for _, node := range row.nodes {
				s, err := n.Transformer()(node)
				if err != nil || s.(*corev1.Node).Labels["secret"] != "" {
					t.Fatalf("stripping: %v, %v", s, err)
				}
				stripped = append(stripped, s)
			}
			for form, nodes := range map[string][]any{"whole": row.nodes, "stripped": stripped} {
				_ = n.Replace(nodes, "") // the store never fails
				got := map[string]string{}
				for name, property := range properties(facts{summary: n.summary(), version: row.version}, metav1.Time{}) {
					got[name] = property.Value
				}
				delete(got, "kubernetes-fleet.io/node-count")
				delete(got, "k8s.io/k8s-version")
				if diff := cmp.Diff(row.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", form, diff)
				}
			}
		})
	}
}

func TestFactsOfThousandsOfDifferentNodesFitIntoAReport(t *testing.T) {
	n := newNodes(make(chan struct{}, 1))
	var nodes []any
	for i := range 3000 {
		nodes = append(nodes, cloudNode(fmt.Sprint(i), "azure:///x", "amd64", map[string]string{
			"topology.kubernetes.io/zone": fmt.Sprint("zone-", i), "agentpool": fmt.Sprint("pool-", i),
			"node.kubernetes.io/instance-type": fmt.Sprint("type-", i),
		}, fmt.Sprintf("example.com/r-%d", i), "1"))
	}
	_ = n.Replace(nodes, "") // the store never fails
	values := map[string]string{}
	for i := range 100 {
		values[fmt.Sprint("custom-", i)] = "x"
	}
	got := properties(facts{summary: n.summary(), version: "v1", custom: customFacts{values: values}}, metav1.Time{})
	if len(got) > 100+60 {
		t.Errorf("%d properties", len(got))
	}
	for name, property := range got {
		if len(name) > 253 || len(property.Value) > 1024 {
			t.Errorf("%s has %d bytes", name, len(property.Value))
		}
	}
}

func TestCustomFacts(t *testing.T) {
	changed := make(chan struct{}, 1)
	c := newCustom(changed)
	if c.facts().answered {
		t.Error("it is complete before anything is known")
	}
	property := func(name, value string) *kubeclient.ClusterProperty {
		return &kubeclient.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kubeclient.ClusterPropertySpec{Value: value}}
	}
	c.propertiesWatched(fmt.Errorf("forbidden"))
	configMap := &corev1.ConfigMap{Data: map[string]string{"color": "blue", "rack": "r1", "k8s.io": "no", "x.muster": "no"}}
	_ = c.configMap.Replace([]any{configMap}, "") // the store never fails
	want := customFacts{true, map[string]string{"color": "blue", "rack": "r1"}}
	if diff := cmp.Diff(want, c.facts(), cmp.AllowUnexported(customFacts{})); diff != "" {
		t.Errorf("of a ConfigMap (-want +got):\n%s", diff)
	}
	_ = c.properties.Replace([]any{
		property("color", "red"), property("cluster.clusterset.k8s.io", "id"), property("other.k8s.io", "no"),
	}, "") // the store never fails
	<-changed
	_ = c.properties.Update(property("other.k8s.io", "still no")) // the store never fails
	select {
	case <-changed:
		t.Error("a property that is not reported wakes the reporter")
	default:
	}
	want.values = map[string]string{"color": "red", "rack": "r1", "cluster.clusterset.k8s.io": "id"}
	if diff := cmp.Diff(want.values, c.facts().values); diff != "" {
		t.Errorf("of both (-want +got):\n%s", diff)
	}
	_ = c.configMap.Delete(configMap)               // the store never fails
	_ = c.properties.Delete(property("color", "x")) // the store never fails
	if diff := cmp.Diff(map[string]string{"cluster.clusterset.k8s.io": "id"}, c.facts().values); diff != "" {
		t.Errorf("after deletions (-want +got):\n%s", diff)
	}
}
