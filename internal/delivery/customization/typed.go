package customization

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/yamlcheck"
)

// labelPrefix is the prefix of a value with the name of a label of the Cluster.
const labelPrefix = "global.fleet.clusterLabels."

// fillLabels replaces the values with names of labels of the Cluster, at any depth. A missing label
// becomes an empty text.
func fillLabels(helm *fleet.HelmOptions, labels map[string]string) error {
	if helm.Values == nil || !strings.Contains(string(helm.Values.Raw), labelPrefix) {
		return nil
	}
	values, err := decodeObject(helm.Values.Raw)
	if err != nil {
		return fmt.Errorf("helm.values: %w", err)
	}
	if _, err := mapStrings("helm.values", values, func(_, text string) (any, error) {
		if label, named := strings.CutPrefix(text, labelPrefix); named {
			return labels[label], nil
		}
		return text, nil
	}); err != nil {
		return err
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("encoding the values: %w", err)
	}
	helm.Values = &runtime.RawExtension{Raw: raw}
	return nil
}

// typed returns the value of a filled template in YAML: a number, a boolean, a list, a map or a
// string. Rancher Fleet fills the templates in the YAML of all values, so a template in YAML
// quotes gives a string. Invalid YAML also gives a string.
func typed(template, filled string) any {
	if quoted(template) {
		return filled
	}
	trimmed := strings.TrimSpace(filled)
	lines := strings.Contains(trimmed, "\n")
	document := "v: " + trimmed + "\n"
	if lines {
		document = "v:\n  " + strings.ReplaceAll(filled, "\n", "\n  ") + "\n"
	}
	if yamlcheck.Check([]byte(document)) != nil {
		return filled
	}
	text, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		return filled
	}
	object, err := decodeObject(text)
	if err != nil || len(object) != 1 {
		return filled
	}
	value := object["v"]
	_, isText := value.(string)
	switch {
	case value == nil && strings.HasPrefix(trimmed, "#"):
		return filled // YAML takes a color for a comment
	case isText && !strings.ContainsAny(trimmed[:1], quotes) && lines:
		return filled // YAML joins the lines
	case isText && !strings.ContainsAny(trimmed[:1], quotes):
		return trimmed // YAML drops the text after a #
	}
	return value
}

// quotes are the first characters of YAML texts in a quoted or special form.
const quotes = `"'|>!&`

// quoted reports whether YAML quotes a text. YAML breaks the lines of a long text without quotes.
func quoted(text string) bool {
	written, err := yaml.Marshal(map[string]string{"v": text})
	value, is := strings.CutPrefix(string(written), "v: ")
	return err != nil || !is || strings.ContainsAny(value[:1], quotes)
}
