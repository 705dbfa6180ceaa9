package bundle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
)

// keyBundleValues is the key of the Bundle's own values in its Secret.
const keyBundleValues = "values.yaml"

// loadValues reads the values stored by `fleet apply` in a Secret beside the Bundle. It reads
// them again until they match the Bundle's hash.
func (c *Controller) loadValues(ctx context.Context, bundle *fleet.Bundle, state *computed) error {
	if bundle.Spec.ValuesHash == "" || state.values != nil {
		return nil
	}
	key := client.ObjectKeyFromObject(bundle)
	var secret corev1.Secret
	problem := func(what string) {
		state.valuesProblem = fmt.Errorf("spec.valuesHash requires the values in Secret %s of type %s, but %s: waiting for it; run fleet apply "+
			"again if it does not come",
			key, fleet.SecretTypeBundleValues, what)
	}
	if err := c.Live.Get(ctx, key, &secret); apierrors.IsNotFound(err) {
		problem("there is none")
		return nil
	} else if err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if secret.Type != fleet.SecretTypeBundleValues {
		problem(fmt.Sprintf("it is of type %s", secret.Type))
		return nil
	}
	hash, err := delivery.BundleValuesHash(secret.Data)
	if err != nil {
		return err
	}
	if hash != bundle.Spec.ValuesHash {
		problem("its values have another hash")
		return nil
	}
	state.values, state.valuesProblem = secret.Data, nil
	return nil
}

// withValues returns the Bundle with the values from its Secret.
func (m *computed) withValues(bundle *fleet.Bundle) *fleet.Bundle {
	if len(m.values) == 0 || bundle.Spec.ValuesHash == "" {
		return bundle
	}
	bundle = bundle.DeepCopy()
	put := func(options *fleet.BundleDeploymentOptions, key string) {
		raw, there := m.values[key]
		if !there {
			return
		}
		if options.Helm == nil {
			options.Helm = &fleet.HelmOptions{}
		}
		options.Helm.Values = &runtime.RawExtension{Raw: raw}
	}
	put(&bundle.Spec.BundleDeploymentOptions, keyBundleValues)
	for i := range bundle.Spec.Targets {
		if name := bundle.Spec.Targets[i].Name; name != "" {
			put(&bundle.Spec.Targets[i].BundleDeploymentOptions, name)
		}
	}
	return bundle
}
