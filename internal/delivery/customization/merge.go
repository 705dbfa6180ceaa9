package customization

import (
	"encoding/json"
	"fmt"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// appended are the lists of the options extended by a target; every other list replaces the one
// before.
var appended = map[string]bool{
	"helm.valuesFrom": true, "helm.valuesFiles": true, "yaml.overlays": true, "diff.comparePatches": true,
}

// formerly are the keys of the lists appended by earlier versions of the hub, at any depth.
var formerly = map[string]bool{"valuesFrom": true, "valuesFiles": true, "overlays": true, "comparePatches": true}

// whole is the option field replaced by a target as a whole.
const whole = "correctDrift"

// mergeOptions merges the options of targets into the Bundle's options. Values set by a target
// win. Maps, above all the Helm values, are merged key by key. All option fields are omitted when
// empty, so their JSON contains only the fields in use.
func mergeOptions(version Rules, base fleet.BundleDeploymentOptions,
	targets ...fleet.BundleDeploymentOptions) (fleet.BundleDeploymentOptions, error) {
	merged, err := toMap(base)
	if err != nil {
		return base, err
	}
	for _, target := range targets {
		over, err := toMap(target)
		if err != nil {
			return base, err
		}
		if version == Former {
			mergeMaps(merged, over, appendsFormerly)
			continue
		}
		if over[whole] != nil {
			delete(merged, whole)
		}
		mergeMaps(merged, over, func(path, key string) bool { return appended[path+key] })
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

func appendsFormerly(_, key string) bool { return formerly[key] }

func toMap(options fleet.BundleDeploymentOptions) (map[string]any, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encoding the options: %w", err)
	}
	return decodeObject(text)
}

// mergeMaps merges over into to. It appends a list if appends returns true for its path and key.
func mergeMaps(to, over map[string]any, appends func(path, key string) bool) {
	mergeBelow("", to, over, appends)
}

func mergeBelow(path string, to, over map[string]any, appends func(path, key string) bool) {
	for key, value := range over {
		switch value := value.(type) {
		case map[string]any:
			if below, ok := to[key].(map[string]any); ok {
				mergeBelow(path+key+".", below, value, appends)
				continue
			}
		case []any:
			if below, ok := to[key].([]any); ok && appends(path, key) {
				to[key] = append(below, value...)
				continue
			}
		}
		to[key] = value
	}
}
