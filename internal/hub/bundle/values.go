package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// maxRendered is how long the text of one template may become.
const maxRendered = 1 << 20

// functions are those of sprig that give the same result each time and tell nothing of the hub: a result that changed by itself would
// be a new deployment at every look.
var functions = func() template.FuncMap {
	safe := sprig.HermeticTxtFuncMap()
	for name := range safe {
		for _, word := range []string{"rand", "gen", "bcrypt", "htpasswd", "encryptAES", "uuid", "now", "ago", "env", "getHostByName"} {
			if strings.HasPrefix(name, word) || name == "expandenv" {
				delete(safe, name)
			}
		}
	}
	return safe
}()

// render fills the templates in the Helm values of a Cluster's options and puts templateValues in their place.
func render(options *fleet.BundleDeploymentOptions, cluster *fleet.Cluster) error {
	if options.Helm == nil || options.Helm.DisablePreProcess {
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
	if _, err := renderTree("helm.values", values, data); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(options.Helm.TemplateValues)) {
		path := "helm.templateValues." + key
		text, err := renderText(path, options.Helm.TemplateValues[key], data)
		if err != nil {
			return err
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return fmt.Errorf("%s: the result is not YAML: %w", path, err)
		}
		mergeMaps(values, map[string]any{key: value})
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("encoding the values: %w", err)
	}
	options.Helm.Values, options.Helm.TemplateValues = &runtime.RawExtension{Raw: raw}, nil
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

// anyMap lets a template fail on a key that is missing and not only on a nil map.
func anyMap(m map[string]string) map[string]any {
	result := make(map[string]any, len(m))
	for key, value := range m {
		result[key] = value
	}
	return result
}

// renderTree fills the templates in all strings below a value.
func renderTree(path string, value any, data map[string]any) (any, error) {
	var err error
	switch value := value.(type) {
	case string:
		return renderText(path, value, data)
	case []any:
		for i := range value {
			if value[i], err = renderTree(fmt.Sprintf("%s[%d]", path, i), value[i], data); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if value[key], err = renderTree(path+"."+key, value[key], data); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func renderText(path, text string, data map[string]any) (string, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	parsed, err := template.New("value").Delims("${", "}").Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w (set helm.disablePreProcess to leave ${ } alone)", path, plain(err))
	}
	var out limited
	if err := parsed.Execute(&out, data); err != nil {
		return "", fmt.Errorf("%s: %w", path, plain(err))
	}
	return out.String(), nil
}

// plain takes the position in the template out of an error, which is of no use for a value of one line.
func plain(err error) error {
	text := strings.TrimPrefix(err.Error(), "template: ")
	if _, after, ok := strings.Cut(text, ": executing \"value\" at "); ok {
		text = after
	}
	return errors.New(text)
}

// limited is a buffer that refuses to grow without bounds.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxRendered {
		return 0, fmt.Errorf("the result is longer than %d bytes", maxRendered)
	}
	return l.Buffer.Write(p)
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
