package hub_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestABundleForgetsAClusterThatMatchesNoMoreAndHadNoDeployment(t *testing.T) {
	f := newFixture(t)
	f.place("a", map[string]string{"env": "prod"})
	f.bundle("app", configMap+`
helm: {values: {zone: "${ .ClusterLabels.zone }"}}
targets: [{clusterSelector: {matchLabels: {env: prod}}}]
`)
	f.untilBundle("app", "Processed", corev1.ConditionFalse, "zone")
	var cluster fleet.Cluster
	f.check(f.get(&cluster, f.workspace, "a"))
	f.patch(&cluster, `{"metadata":{"labels":{"env":null}}}`)
	f.untilBundle("app", "Processed", corev1.ConditionTrue)
}
