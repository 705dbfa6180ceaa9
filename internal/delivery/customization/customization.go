// Package customization gives a Cluster the options of a Bundle. It merges the options of the
// matching targets. It fills the templates with the labels and values of the Cluster.
//
// Its invariant: it is pure. The hub and a user with a preview of a Bundle get the same options.
package customization

import (
	"encoding/json"
	"fmt"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Options returns the options of a Cluster with their values filled in.
func Options(by Rules, bundle *fleet.Bundle, matched []int, cluster *fleet.Cluster) (fleet.BundleDeploymentOptions, error) {
	var over []fleet.BundleDeploymentOptions
	for _, i := range matched {
		over = append(over, bundle.Spec.Targets[i].BundleDeploymentOptions)
	}
	options, err := mergeOptions(by, bundle.Spec.BundleDeploymentOptions, over...)
	if err != nil {
		return options, err
	}
	return options, render(by, &options, cluster)
}

// Values returns the Helm values of options.
func Values(options fleet.BundleDeploymentOptions) (map[string]any, error) {
	values := map[string]any{}
	if options.Helm == nil || options.Helm.Values == nil || len(options.Helm.Values.Raw) == 0 {
		return values, nil
	}
	if err := json.Unmarshal(options.Helm.Values.Raw, &values); err != nil {
		return nil, fmt.Errorf("helm.values: %w", err)
	}
	return values, nil
}
