package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
)

// valuesOf waits until the values of a deployment are these.
func (p place) valuesOf(bundle string, want map[string]any) {
	p.t.Helper()
	p.eventually("the values of "+bundle+" on "+p.name, func() error {
		var secret corev1.Secret
		if err := p.get(&secret, p.namespace, bundle); err != nil {
			return err
		}
		got := map[string]any{}
		p.check(json.Unmarshal(secret.Data[fleet.KeyValues], &got))
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestValuesThatTheCLITookOutOfABundleAreDeployed(t *testing.T) {
	f := newFixture(t)
	prod, dev := f.place("prod", map[string]string{"env": "prod"}), f.place("dev", map[string]string{"env": "dev"})
	data := map[string][]byte{"values.yaml": []byte(`{"replicas":3,"image":"a"}`), "in-prod": []byte(`{"replicas":5}`)}
	hash, err := delivery.BundleValuesHash(data)
	f.check(err)
	f.bundle("cli", fmt.Sprintf(`
valuesHash: %s
resources: [{name: x.yaml, content: "kind: X"}]
targets: [{name: in-prod, clusterSelector: {matchLabels: {env: prod}}}, {name: rest, clusterSelector: {}}]
`, hash))
	f.untilBundle("cli", fleet.ConditionProcessed, corev1.ConditionFalse, "Secret "+f.workspace+"/cli", "there is none")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "cli"}, Type: fleet.SecretTypeBundleValues,
		Data: map[string][]byte{"values.yaml": []byte(`{}`)},
	}
	f.check(f.Create(context.Background(), secret))
	f.untilBundle("cli", fleet.ConditionProcessed, corev1.ConditionFalse, "another hash")
	f.change(secret, func() { secret.Data = data })
	prod.valuesOf("cli", map[string]any{"replicas": 5.0, "image": "a"})
	dev.valuesOf("cli", map[string]any{"replicas": 3.0, "image": "a"})
	f.untilBundle("cli", fleet.ConditionProcessed, corev1.ConditionTrue)
	f.untilBundle("cli", fleet.ConditionSupported, corev1.ConditionTrue)

	// The next `fleet apply` writes both; until they fit each other, what is deployed stays.
	data["values.yaml"] = []byte(`{"replicas":7}`)
	hash, err = delivery.BundleValuesHash(data)
	f.check(err)
	var bundle fleet.Bundle
	f.check(f.get(&bundle, f.workspace, "cli"))
	f.change(&bundle, func() { bundle.Spec.ValuesHash = hash })
	f.untilBundle("cli", fleet.ConditionProcessed, corev1.ConditionFalse, "another hash", "deployed objects stay as they are")
	dev.valuesOf("cli", map[string]any{"replicas": 3.0, "image": "a"})
	f.change(secret, func() { secret.Data = data })
	dev.valuesOf("cli", map[string]any{"replicas": 7.0})
}
