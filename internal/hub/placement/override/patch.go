package override

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// operation is an operation of a JSON patch, RFC 6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// parse checks an operation as far as possible without an object.
func parse(given placement.JSONPatchOverride) (o operation, problem string) {
	o = operation{Op: given.Operator, Path: given.Path}
	segments := strings.Split(given.Path, "/")
	hasValue := given.Value != nil && len(given.Value.Raw) > 0
	switch {
	case !slices.Contains([]string{"add", "remove", "replace"}, o.Op):
		return o, "op must be add, remove or replace"
	case len(segments) < 2 || segments[0] != "" || slices.Contains(segments[1:], ""):
		return o, fmt.Sprintf("path %q must begin with a slash and have nothing empty between slashes", o.Path)
	case slices.Contains([]string{"apiVersion", "kind", "status"}, segments[1]):
		return o, fmt.Sprintf("path %q: apiVersion, kind and status cannot be overridden", o.Path)
	case segments[1] == "metadata" && (len(segments) < 3 || segments[2] != "labels" && segments[2] != "annotations"):
		return o, fmt.Sprintf("path %q: of metadata only labels and annotations can be overridden", o.Path)
	case o.Op == "remove" && hasValue:
		return o, "remove takes no value"
	case o.Op != "remove" && !hasValue:
		return o, o.Op + " needs a value"
	}
	if hasValue {
		if err := json.Unmarshal(given.Value.Raw, &o.Value); err != nil {
			return o, "its value is no JSON"
		}
	}
	return o, ""
}

// variable stands for the name or a label of the member.
var variable = regexp.MustCompile(`\$\{MEMBER-CLUSTER-(?:NAME|LABEL-KEY-([^}]+))\}`)

// substitute replaces the variables in operations by the values of a member.
func substitute(given []operation, m Member) (operations []operation, problem string) {
	text := func(s string) string {
		return variable.ReplaceAllStringFunc(s, func(found string) string {
			key := variable.FindStringSubmatch(found)[1]
			if key == "" {
				return m.Name
			}
			value, has := m.Labels[key]
			if !has && problem == "" {
				problem = fmt.Sprintf("%s uses label %s, which member %s does not have", found, key, m.Name)
			}
			return value
		})
	}
	var within func(value any) any
	within = func(value any) any {
		switch v := value.(type) {
		case string:
			return text(v)
		case []any:
			list := make([]any, 0, len(v))
			for _, item := range v {
				list = append(list, within(item))
			}
			return list
		case map[string]any:
			fields := make(map[string]any, len(v))
			for _, name := range slices.Sorted(maps.Keys(v)) {
				fields[text(name)] = within(v[name])
			}
			return fields
		}
		return value
	}
	for _, o := range given {
		o.Value = within(o.Value)
		operations = append(operations, o)
	}
	return operations, problem
}

// patch applies operations to an object. No problem quotes the object, because it may be a
// Secret.
func patch(object *unstructured.Unstructured, operations []operation) (patched *unstructured.Unstructured, problem string) {
	before, err := json.Marshal(object.Object)
	if err != nil {
		return nil, "it cannot be written as JSON"
	}
	for _, o := range operations {
		text, err := json.Marshal([]operation{o})
		if err != nil {
			return nil, fmt.Sprintf("%s %s cannot be written as JSON", o.Op, o.Path)
		}
		decoded, err := jsonpatch.DecodePatch(text)
		if err != nil {
			return nil, fmt.Sprintf("%s %s is no JSON patch", o.Op, o.Path)
		}
		if before, err = decoded.Apply(before); err != nil {
			return nil, fmt.Sprintf("%s %s does not apply: a part of the path does not exist, or has another kind", o.Op, o.Path)
		}
	}
	patched = &unstructured.Unstructured{}
	if err := json.Unmarshal(before, &patched.Object); err != nil {
		return nil, "the rest is not an object"
	}
	return patched, forbiddenChange(object, patched)
}

// forbiddenChange returns a message about a forbidden change by an override; "" if none.
func forbiddenChange(before, after *unstructured.Unstructured) string {
	rest := func(o *unstructured.Unstructured) map[string]any {
		metadata, _, err := unstructured.NestedMap(o.Object, "metadata")
		if err != nil {
			return nil
		}
		delete(metadata, "labels")
		delete(metadata, "annotations")
		return metadata
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(after.Object, "metadata", field); err != nil {
			return "its metadata." + field + " would not be texts"
		}
	}
	if before.GroupVersionKind() != after.GroupVersionKind() || !equality.Semantic.DeepEqual(rest(before), rest(after)) ||
		after.Object["status"] != nil {
		return "an override must not change kind, name, namespace or status, and of the metadata only labels and annotations"
	}
	return ""
}
