package bundle

import (
	"encoding/json"
	"fmt"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// appended are the lists that a target adds to; every other list replaces the one before.
var appended = map[string]bool{"valuesFrom": true, "valuesFiles": true, "overlays": true, "comparePatches": true}

// mergeOptions lays the options of targets over those of the Bundle: what a target sets wins, maps (the Helm values above all) are merged
// key by key. All option fields are left out when empty, so that their JSON says what is set.
func mergeOptions(base fleet.BundleDeploymentOptions, targets ...fleet.BundleDeploymentOptions) (fleet.BundleDeploymentOptions, error) {
	merged, err := toMap(base)
	if err != nil {
		return base, err
	}
	for _, target := range targets {
		over, err := toMap(target)
		if err != nil {
			return base, err
		}
		mergeMaps(merged, over)
	}
	var options fleet.BundleDeploymentOptions
	text, err := json.Marshal(merged)
	if err == nil {
		err = json.Unmarshal(text, &options)
	}
	if err != nil {
		return base, fmt.Errorf("merging the options: %w", err)
	}
	return options, nil
}

func toMap(options fleet.BundleDeploymentOptions) (map[string]any, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encoding the options: %w", err)
	}
	return decodeObject(text)
}

// mergeMaps lays over on to.
func mergeMaps(to, over map[string]any) {
	for key, value := range over {
		switch value := value.(type) {
		case map[string]any:
			if below, ok := to[key].(map[string]any); ok {
				mergeMaps(below, value)
				continue
			}
		case []any:
			if below, ok := to[key].([]any); ok && appended[key] {
				to[key] = append(below, value...)
				continue
			}
		}
		to[key] = value
	}
}
