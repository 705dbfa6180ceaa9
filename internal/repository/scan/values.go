package scan

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/yamlcheck"
)

// mergeValues merges the files in helm.valuesFiles into helm.values, of the Bundle and of each
// customization. It returns the paths of these files; they are no resources.
func mergeValues(tree Tree, s source, spec *fleet.BundleSpec, customizations []fleet.BundleTarget) (map[string]bool, error) {
	read := map[string]bool{}
	merge := func(field string, helm *fleet.HelmOptions) error {
		if helm == nil || len(helm.ValuesFiles) == 0 {
			return nil
		}
		values := map[string]any{}
		if helm.Values != nil {
			if err := json.Unmarshal(helm.Values.Raw, &values); err != nil {
				return fmt.Errorf("%s: %shelm.values: %w", s.options, field, err)
			}
		}
		for i, name := range helm.ValuesFiles {
			file, err := within(s.dir, name)
			if err != nil {
				return fmt.Errorf("%s: %shelm.valuesFiles[%d]: %w", s.options, field, i, err)
			}
			if !tree.has(file) {
				return fmt.Errorf("%s: %shelm.valuesFiles[%d]: the repository has no file %s", s.options, field, i, file)
			}
			more, err := readValues(tree, file)
			if err != nil {
				return err
			}
			read[file] = true
			mergeInto(values, more)
		}
		raw, err := json.Marshal(values)
		helm.Values, helm.ValuesFiles = &runtime.RawExtension{Raw: raw}, nil
		return err
	}
	if err := merge("", spec.Helm); err != nil {
		return nil, err
	}
	for i := range customizations {
		if err := merge(fmt.Sprintf("targetCustomizations[%d].", i), customizations[i].Helm); err != nil {
			return nil, err
		}
	}
	return read, nil
}

func readValues(tree Tree, file string) (map[string]any, error) {
	text, err := tree.Read(file)
	if err != nil {
		return nil, err
	}
	if err := yamlcheck.Check(text); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return nil, fmt.Errorf("%s: its values are no map of YAML: %w", file, err)
	}
	return values, nil
}

// mergeInto merges maps key by key; anything else replaces the existing value.
func mergeInto(values, more map[string]any) {
	for key, value := range more {
		inner, isMap := value.(map[string]any)
		if present, wasMap := values[key].(map[string]any); isMap && wasMap {
			mergeInto(present, inner)
			continue
		}
		values[key] = value
	}
}
