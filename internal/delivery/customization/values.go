package customization

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery/templates"
	"github.com/muster-fleet/muster/internal/yamlcheck"
)

// Rules select how the options of a Cluster are merged from its Bundle.
type Rules bool

const (
	// Present are the rules of Rancher Fleet.
	Present Rules = false
	// Former are the rules of earlier versions of the hub. A template gives a string, and a
	// target appends to lists in values by their keys. A deployment written by an earlier version
	// stays until its Bundle or Cluster changes.
	Former Rules = true
)

// render fills in the options of a Cluster: the labels and templates of the Helm values, and of the
// labels and annotations of the namespace. It moves templateValues into the values.
func render(version Rules, options *fleet.BundleDeploymentOptions, cluster *fleet.Cluster) error {
	if version == Present {
		if err := renderNamespace(options, cluster); err != nil {
			return err
		}
	}
	if options.Helm == nil {
		return nil
	}
	if version == Present {
		if err := fillLabels(options.Helm, cluster.Labels); err != nil {
			return err
		}
	}
	if options.Helm.DisablePreProcess {
		return nil
	}
	if options.Helm.Values == nil && len(options.Helm.TemplateValues) == 0 {
		return nil
	}
	values := map[string]any{}
	if options.Helm.Values != nil && len(options.Helm.Values.Raw) > 0 {
		var err error
		if values, err = decodeObject(options.Helm.Values.Raw); err != nil {
			return fmt.Errorf("helm.values: %w", err)
		}
	}
	data, err := templateData(cluster)
	if err != nil {
		return err
	}
	if err := templates.With(func(filler *templates.Filler) error {
		return fillAll(version, filler, values, options.Helm.TemplateValues, data)
	}); err != nil {
		return err
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("encoding the values: %w", err)
	}
	options.Helm.Values, options.Helm.TemplateValues = &runtime.RawExtension{Raw: raw}, nil
	return nil
}

// fillAll fills the templates in values, and adds the values written as one template.
func fillAll(version Rules, filler *templates.Filler, values map[string]any, whole map[string]string, data map[string]any) error {
	fill := func(path, text string) (any, error) {
		filled, err := filler.Fill(text, data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if version == Former || filled == text {
			return filled, nil
		}
		return typed(text, filled), nil
	}
	if _, err := mapStrings("helm.values", values, fill); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(whole)) {
		path := "helm.templateValues." + key
		text, err := filler.Fill(whole[key], data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := yamlcheck.Check([]byte(text)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return fmt.Errorf("%s: the result is not YAML: %w", path, err)
		}
		if version == Present {
			values[key] = value
			continue
		}
		mergeMaps(values, map[string]any{key: value}, appendsFormerly)
	}
	return nil
}

func templateData(cluster *fleet.Cluster) (map[string]any, error) {
	values := map[string]any{}
	if v := cluster.Spec.TemplateValues; v != nil && len(v.Raw) > 0 {
		var err error
		if values, err = decodeObject(v.Raw); err != nil {
			return nil, fmt.Errorf("templateValues of Cluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
		}
	}
	return map[string]any{
		"ClusterName": cluster.Name, "ClusterNamespace": cluster.Namespace, "ClusterValues": values,
		"ClusterLabels": anyMap(cluster.Labels), "ClusterAnnotations": anyMap(cluster.Annotations),
	}, nil
}

// anyMap makes a template fail on a missing key, and not only on a nil map.
func anyMap(m map[string]string) map[string]any {
	result := make(map[string]any, len(m))
	for key, value := range m {
		result[key] = value
	}
	return result
}

// mapStrings replaces each string at and below a value.
func mapStrings(path string, value any, replace func(path, text string) (any, error)) (any, error) {
	var err error
	switch value := value.(type) {
	case string:
		return replace(path, value)
	case []any:
		for i := range value {
			if value[i], err = mapStrings(fmt.Sprintf("%s[%d]", path, i), value[i], replace); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if value[key], err = mapStrings(path+"."+key, value[key], replace); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// decodeObject decodes a JSON object and keeps numbers as they are written.
func decodeObject(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	object := map[string]any{}
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	if object == nil {
		object = map[string]any{}
	}
	return object, nil
}
