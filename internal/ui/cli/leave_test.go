package cli

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
