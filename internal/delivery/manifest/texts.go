package manifest

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// templated are the API groups of Kubernetes with templates of other objects.
var templated = []string{"", "apps", "batch"}

// templates are the paths of templates in objects of these groups. Custom resources may have other
// things at the same paths.
var templates = [][]string{
	{"template"}, {"spec", "template"}, {"spec", "jobTemplate"}, {"spec", "jobTemplate", "spec", "template"},
}

// metadataOf calls visit with the metadata of an object and of its templates.
func metadataOf(o *unstructured.Unstructured, visit func(path string, metadata map[string]any)) {
	visitBelow := func(path ...string) {
		value, _, err := unstructured.NestedFieldNoCopy(o.Object, append(path, "metadata")...)
		if metadata, ok := value.(map[string]any); ok && err == nil {
			visit(strings.Join(append(path, "metadata"), "."), metadata)
		}
	}
	visitBelow()
	if slices.Contains(templated, o.GroupVersionKind().Group) {
		for _, path := range templates {
			visitBelow(path...)
		}
	}
}

// textMaps are the maps of texts by kind, besides labels and annotations.
var textMaps = map[schema.GroupKind][]string{
	secretKind:          {"stringData", "data"},
	{Kind: "ConfigMap"}: {"data", "binaryData"},
}

// CheckTexts returns the first name, label, annotation, value of a Secret or ConfigMap, or argument
// or variable of a container without a text. It looks at the object and its templates. Kubernetes'
// library reads no label of such an object, and the API server's errors quote the value.
func CheckTexts(o *unstructured.Unstructured) (problem string) {
	note := func(path string, value any) {
		if problem == "" {
			problem = fmt.Sprintf("%s is %s, and Kubernetes takes only a text: put the value in quotes", path, kindOf(value))
		}
	}
	metadataOf(o, func(path string, metadata map[string]any) {
		for _, field := range []string{"name", "namespace", "generateName"} {
			if value := metadata[field]; value != nil && !isText(value) {
				note(path+"."+field, value)
			}
		}
		for _, field := range []string{"labels", "annotations"} {
			checkMap(path+"."+field, metadata[field], note)
		}
	})
	for _, field := range textMaps[o.GroupVersionKind().GroupKind()] {
		checkMap(field, o.Object[field], note)
	}
	eachContainer(o, func(path string, container map[string]any) { checkContainer(path, container, note) })
	return problem
}

// checkMap calls note with the values of a map without a text. Null is an empty text to Kubernetes.
func checkMap(path string, of any, note func(path string, value any)) {
	values, isMap := of.(map[string]any)
	if of != nil && !isMap {
		note(path, of)
	}
	for _, key := range sortedKeys(values) {
		if value := values[key]; value != nil && !isText(value) {
			note(keyed(path, key), value)
		}
	}
}

// checkContainer calls note with the arguments and variables of a container without a text.
func checkContainer(path string, container map[string]any, note func(path string, value any)) {
	for _, field := range []string{"command", "args"} {
		words, _ := container[field].([]any)
		for i, word := range words {
			if word != nil && !isText(word) {
				note(fmt.Sprintf("%s.%s[%d]", path, field, i), word)
			}
		}
	}
	variables, _ := container["env"].([]any)
	for i, variable := range variables {
		fields, _ := variable.(map[string]any)
		if value := fields["value"]; value != nil && !isText(value) {
			note(fmt.Sprintf("%s.env[%d].value", path, i), value)
		}
	}
}

// keyed returns the path of a key of a map.
func keyed(path, key string) string {
	if strings.ContainsAny(key, "./") {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	return path + "." + key
}

func isText(value any) bool {
	_, text := value.(string)
	return text
}

// fillTexts writes an empty text for each label or annotation without a value, as the API server
// does. Otherwise the library reads none of them.
func fillTexts(o *unstructured.Unstructured) {
	metadataOf(o, func(_ string, metadata map[string]any) {
		for _, field := range []string{"labels", "annotations"} {
			values, _ := metadata[field].(map[string]any)
			for key, value := range values {
				if value == nil {
					values[key] = ""
				}
			}
		}
	})
}
