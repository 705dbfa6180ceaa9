package drift

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
)

// opIgnore is the operation of a ComparePatch for a missing object. An existing object is compared
// all the same.
const opIgnore = "ignore"

func mayBeMissing(patches []fleet.ComparePatch) bool {
	return slices.ContainsFunc(patches, func(patch fleet.ComparePatch) bool {
		return slices.ContainsFunc(patch.Operations, func(o fleet.Operation) bool { return o.Op == opIgnore })
	})
}

func patchesFor(key Key, diff *fleet.DiffOptions) []fleet.ComparePatch {
	if diff == nil {
		return nil
	}
	var matching []fleet.ComparePatch
	for _, patch := range diff.ComparePatches {
		if isFor(patch, key) {
			matching = append(matching, patch)
		}
	}
	return matching
}

func isFor(patch fleet.ComparePatch, key Key) bool {
	fits := func(wanted, is string) bool { return wanted == "" || wanted == is }
	return fits(patch.Kind, key.Kind.Kind) && fits(patch.APIVersion, key.Kind.GroupVersion().String()) &&
		fits(patch.Namespace, key.Namespace) && delivery.MatchesName(patch, key.Name)
}

// unmatched describes the patches without a matching object in the release.
func unmatched(keys []Key, diff *fleet.DiffOptions) (sentences []string) {
	if diff == nil {
		return nil
	}
	for i, patch := range diff.ComparePatches {
		if !slices.ContainsFunc(keys, func(key Key) bool { return isFor(patch, key) }) && len(sentences) < maxNamed {
			sentences = append(sentences, fmt.Sprintf("diff.comparePatches[%d] matches no object: its kind is %q, its apiVersion %q, "+
				"its namespace %q and its name %q", i, patch.Kind, patch.APIVersion, patch.Namespace, patch.Name))
		}
	}
	return sentences
}

// neutralize removes the fields of a compare patch. It skips an operation if the object lacks the
// path.
func neutralize(content map[string]any, patch fleet.ComparePatch) map[string]any {
	operations := patch.Operations
	for _, pointer := range patch.JSONPointers {
		operations = append(operations, fleet.Operation{Op: "remove", Path: pointer})
	}
	for _, operation := range operations {
		if operation.Op == opIgnore {
			continue
		}
		step := map[string]any{"op": operation.Op, "path": operation.Path}
		if operation.Op != "remove" {
			var value any = operation.Value
			if strings.HasPrefix(operation.Value, "{") || strings.HasPrefix(operation.Value, "[") {
				if err := json.Unmarshal([]byte(operation.Value), &value); err != nil {
					value = operation.Value
				}
			}
			step["value"] = value
		}
		if changed, ok := applyStep(content, step); ok {
			content = changed
		}
	}
	return content
}

func applyStep(content map[string]any, step map[string]any) (map[string]any, bool) {
	document, err := json.Marshal(content)
	if err != nil {
		return nil, false
	}
	encoded, err := json.Marshal([]any{step})
	if err != nil {
		return nil, false
	}
	decoded, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		return nil, false
	}
	patched, err := decoded.Apply(document)
	if err != nil {
		return nil, false
	}
	var changed map[string]any
	err = json.Unmarshal(patched, &changed)
	return changed, err == nil
}

// keepLeftOut copies the current values of left-out fields into the manifest, so the API server
// keeps them.
func keepLeftOut(desired, found *unstructured.Unstructured, patches []fleet.ComparePatch) *unstructured.Unstructured {
	content := desired.DeepCopy().Object
	for _, patch := range patches {
		pointers := slices.Clone(patch.JSONPointers)
		for _, operation := range patch.Operations {
			if operation.Op != opIgnore {
				pointers = append(pointers, operation.Path)
			}
		}
		for _, pointer := range pointers {
			step := map[string]any{"op": "remove", "path": pointer}
			if value, there := at(found.Object, pointer); there {
				step = map[string]any{"op": "add", "path": pointer, "value": value}
			}
			if changed, ok := applyStep(content, step); ok {
				content = changed
			}
		}
	}
	return &unstructured.Unstructured{Object: content}
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// at returns the value at a JSON pointer.
func at(value any, pointer string) (any, bool) {
	for _, part := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		switch parent := value.(type) {
		case map[string]any:
			next, there := parent[unescape.Replace(part)]
			if !there {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(parent) {
				return nil, false
			}
			value = parent[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// overlaid returns an object with the fields of its manifest.
func overlaid(found, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	original, err := found.MarshalJSON()
	if err != nil {
		return nil, err
	}
	wanted, err := desired.MarshalJSON()
	if err != nil {
		return nil, err
	}
	merged, err := jsonpatch.MergePatch(original, wanted)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(merged)
}
