package importer

import (
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/bootstrap"
	"github.com/muster-fleet/muster/internal/hub/bundles/agentchart"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

func TestEveryKindOfTheAgentsManifestIsKnownWithoutDiscovery(t *testing.T) {
	cluster := &fleet.Cluster{Spec: fleet.ClusterSpec{AgentSchedulingCustomization: &fleet.AgentSchedulingCustomization{
		PriorityClass: &fleet.PriorityClassSpec{Value: 1}, PodDisruptionBudget: &fleet.PodDisruptionBudgetSpec{MinAvailable: "1"},
	}}}
	values := agentchart.Of(cluster, "id", settings.Default().Agent, "cattle-fleet-system")
	values.Bootstrap = &bootstrap.Bootstrap{APIServerURL: "https://hub", Token: "t", TokenName: "n", ClusterNamespace: "clusters"}
	objects, err := agentchart.Render(values)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		if _, err := kinds.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			t.Errorf("%s %s: %v", gvk.Kind, object.GetName(), err)
		}
	}
}

func TestASchedulingThatSetsNothingIsNone(t *testing.T) {
	var none, empty fleet.ClusterStatus
	describeSettings(&none, fleet.ClusterSpec{}, settings.Default().Agent)
	describeSettings(&empty, fleet.ClusterSpec{AgentSchedulingCustomization: &fleet.AgentSchedulingCustomization{}}, settings.Default().Agent)
	if empty.AgentSchedulingCustomizationHash != "" || none.AgentSchedulingCustomizationHash != "" {
		t.Errorf("the hash is %q", empty.AgentSchedulingCustomizationHash)
	}
	var some fleet.ClusterStatus
	describeSettings(&some,
		fleet.ClusterSpec{AgentSchedulingCustomization: &fleet.AgentSchedulingCustomization{PriorityClass: &fleet.PriorityClassSpec{}}},
		settings.Default().Agent)
	if some.AgentSchedulingCustomizationHash == "" {
		t.Error("one that asks for a PriorityClass has no hash")
	}
}
