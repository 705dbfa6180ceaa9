package drift

import (
	"encoding/json"
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// FuzzNeutralize leaves fields of a patch out of an object. The object stays one.
func FuzzNeutralize(f *testing.F) {
	f.Add([]byte(`{"spec":{"replicas":1,"list":[{"a":"b"}]}}`), "remove", "/spec/replicas", "", "/spec/list/0")
	f.Add([]byte(`{"a":{"b/c":1}}`), "replace", "/a/b~1c", `{"x":`, "")
	f.Add([]byte(`{"a":[1]}`), "add", "/a/999999999", "[1]", "/a/-1")
	f.Add([]byte(`{"a":[1]}`), "replace", "", "null", "a")
	f.Fuzz(func(t *testing.T, object []byte, op, path, value, pointer string) {
		var content map[string]any
		if json.Unmarshal(object, &content) != nil || content == nil {
			return
		}
		left := neutralize(content, fleet.ComparePatch{
			Operations: []fleet.Operation{{Op: op, Path: path, Value: value}}, JSONPointers: []string{pointer},
		})
		if left == nil {
			t.Error("a patch leaves nothing of the object")
		}
		at(content, pointer)
	})
}
