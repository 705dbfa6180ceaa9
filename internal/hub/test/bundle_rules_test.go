package hub_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
)

func TestAHubWithOtherRulesDeploysNothingAnew(t *testing.T) {
	f := newAlone(t, "")
	p := f.place("a", map[string]string{"replicas": "3"})
	bundle := f.bundle("app", configMap+`
correctDrift: {enabled: true}
helm: {values: {replicas: "${ .ClusterLabels.replicas }", label: global.fleet.clusterLabels.replicas}}
targets: [{clusterSelector: {}}]
`)
	d := p.deployment("app", there)
	p.valuesOf("app", map[string]any{"replicas": 3.0, "label": "3"})

	f.hub.Kill()
	options := d.Spec.Options
	values := []byte(`{"label":"global.fleet.clusterLabels.replicas","replicas":"3"}`)
	options.Helm.Values = &runtime.RawExtension{Raw: values}
	id, err := delivery.FormerDeploymentID(delivery.ContentName(d.Spec.DeploymentID), options)
	f.check(err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "app"}}
	f.check(f.get(secret, p.namespace, "app"))
	secret.Data = map[string][]byte{fleet.KeyValues: values, fleet.KeyStagedValues: values}
	f.check(f.Update(context.Background(), secret))
	f.patch(&d, fmt.Sprintf(`{"spec":{"deploymentID":%q,"stagedDeploymentID":%q,"valuesHash":%q}}`, id, id, delivery.ValuesHash(secret.Data)))
	f.hub.Start()
	f.place("b", map[string]string{"replicas": "1"}).deployment("app", there)
	f.untilBundle("app", "Ready", corev1.ConditionFalse, "WaitApplied(2)")
	if now := p.deployment("app", there); now.Generation != d.Generation {
		t.Errorf("the hub wrote what runs: %+v", now.Spec)
	}

	var cluster fleet.Cluster
	f.check(f.get(&cluster, f.workspace, "a"))
	f.patch(&cluster, `{"metadata":{"labels":{"replicas":"4"}}}`)
	p.valuesOf("app", map[string]any{"replicas": 4.0, "label": "4"})
	d = p.deployment("app", func(d fleet.BundleDeployment) error {
		if d.Spec.DeploymentID == id {
			return fmt.Errorf("it has the former deployment ID %s", id)
		}
		return nil
	})
	f.change(bundle, func() {
		bundle.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true, Force: true}
		bundle.Spec.Diff = &fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}}
	})
	p.deployment("app", func(now fleet.BundleDeployment) error {
		if now.Spec.DeploymentID != d.Spec.DeploymentID {
			t.Fatalf("drift that is found otherwise is deployed: %s, before %s", now.Spec.DeploymentID, d.Spec.DeploymentID)
		}
		if now.Spec.CorrectDrift == nil || !now.Spec.CorrectDrift.Force || now.Spec.Options.Diff == nil {
			return fmt.Errorf("it is %+v", now.Spec)
		}
		return nil
	})
}

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
