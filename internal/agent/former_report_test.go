package agent

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAnAgentClearsWhatAFormerOneHasReported: KubeFleet's agent with a property provider has left
// properties, a condition and a resource that Muster's agent does not report. They would be shown,
// and picked by, for ever.
func TestAnAgentClearsWhatAFormerOneHasReported(t *testing.T) {
	config := startCluster(t)
	hub, member := newMemberHub(t, config, "changed"), newGivenMember(t, config)
	hub.apply()
	_, err := hub.reports().Patch(context.Background(), hub.name, types.MergePatchType, []byte(`{"status":{
		"properties":{"kubernetes-fleet.io/node-count":{"value":"7","observationTime":"2026-01-02T03:04:05Z"},
			"kubernetes.azure.com/vm-sizes/Standard~D2/count":{"value":"7","observationTime":"2026-01-02T03:04:05Z"}},
		"resourceUsage":{"capacity":{"cpu":"7","nvidia.com/gpu":"7"},"observationTime":"2026-01-02T03:04:05Z"},
		"conditions":[{"type":"AKSClusterCostPropertiesCollectionSucceeded",`+
		`"status":"True","reason":"Collected","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"},
			{"type":"ClusterPropertyCollectionSucceeded",`+
		`"status":"True","reason":"Collected","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}],
		"agentStatus":[{"type":"ServiceExportImportController","lastReceivedHeartbeat":"2026-01-02T03:04:05Z"}]}}`),
		metav1.PatchOptions{FieldManager: "refresh-member"}, "status")
	check(t, err)
	member.give(hub.own())
	agent := member.start(member.membership(hub))
	agent.untilJoined()
	agent.until("only what it reports itself is there", func() error {
		report, err := hub.reports().Get(context.Background(), hub.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status := report.Status
		if len(status.Properties) != 2 || status.Properties["kubernetes-fleet.io/node-count"].Value == "7" ||
			len(status.ResourceUsage.Capacity) != 0 || len(status.Conditions) != 1 {
			return fmt.Errorf("it has %v, %v and %v", status.Properties, status.ResourceUsage.Capacity, status.Conditions)
		}
		return nil
	})
}
