// Package manifest prepares manifests for delivery, on the hub and on the member. It checks the
// author's text, normalizes it for server-side apply, and has the table of the fields of others.
//
// It reads and writes no cluster. Its invariant: no message quotes a value of a manifest, because
// the manifest may be a Secret.
package manifest

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var secretKind = schema.GroupKind{Kind: "Secret"}

// Check returns the first mistake in a manifest, with the field and the remedy; empty if there is
// none.
func Check(o *unstructured.Unstructured) string {
	if problem := CheckTexts(o); problem != "" {
		return problem
	}
	return checkDuplicates(o)
}

// serverFields are the fields of metadata written only by an API server. A manifest has them from
// kubectl get -o yaml.
var serverFields = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields",
	"selfLink",
}

// DropServerFields removes the fields of metadata written only by an API server.
func DropServerFields(o *unstructured.Unstructured) {
	for _, field := range serverFields {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
}

// Normalize prepares a checked manifest for server-side apply. It leaves out the fields of others.
func Normalize(o *unstructured.Unstructured) {
	DropServerFields(o)
	fillTexts(o)
	encodeStringData(o)
	LeaveOut(o)
}

// encodeStringData moves the texts of a Secret to its data. An owner of stringData does not own the
// resulting data, so a dropped key would stay.
func encodeStringData(o *unstructured.Unstructured) {
	if o.GroupVersionKind().GroupKind() != secretKind {
		return
	}
	texts, isMap := o.Object["stringData"].(map[string]any)
	if _, there := o.Object["stringData"]; there && !isMap && o.Object["stringData"] != nil {
		return // the API server refuses it
	}
	delete(o.Object, "stringData")
	if len(texts) == 0 {
		return
	}
	data, _ := o.Object["data"].(map[string]any)
	data = maps.Clone(data)
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range texts {
		text, _ := value.(string) // CheckTexts refuses all others but null, which Kubernetes takes for an empty text
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	o.Object["data"] = data
}

// kindOf names the type of a value for people.
func kindOf(value any) string {
	switch value.(type) {
	case bool:
		return "a boolean"
	case int64, float64, int:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return fmt.Sprintf("a value of type %T", value)
}

// sortedKeys returns the keys of a map in order, to keep messages stable.
func sortedKeys(of map[string]any) []string { return slices.Sorted(maps.Keys(of)) }
