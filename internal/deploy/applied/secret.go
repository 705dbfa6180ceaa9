package applied

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const ownedTexts, ownedData = "f:stringData", "f:data"

// TextsPatch returns a JSON patch to give a manager the data of a Secret from its stringData; nil
// if it applied none. An owner of stringData owns nothing of the resulting data.
func TextsPatch(secret *unstructured.Unstructured, manager string) ([]byte, error) {
	entries, changed := secret.GetManagedFields(), false
	for i := range entries {
		entry := &entries[i]
		if !isOf(*entry, manager) || !bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(ownedTexts)) {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("reading the fields that %s owns: %w", manager, err)
		}
		texts, found := fields[ownedTexts].(map[string]any)
		if !found {
			continue
		}
		data, _ := fields[ownedData].(map[string]any)
		if data == nil {
			data = map[string]any{}
		}
		maps.Copy(data, texts)
		delete(fields, ownedTexts)
		fields[ownedData] = data
		raw, err := json.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("encoding the fields that %s owns: %w", manager, err)
		}
		entry.FieldsV1, changed = metav1.NewFieldsV1(string(raw)), true
	}
	if !changed {
		return nil, nil
	}
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": secret.GetResourceVersion()},
	})
}

// isOf reports whether an entry has the fields owned by a manager through server-side apply.
func isOf(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" &&
		entry.FieldsV1 != nil
}

// withTexts returns the owned fields of an object, including a Secret's data applied as stringData.
// The owner does not lose these fields when another client changes the data.
func withTexts(object *unstructured.Unstructured, fields []byte) []byte {
	if object.GetKind() != "Secret" || !bytes.Contains(fields, []byte(ownedTexts)) {
		return fields
	}
	data, err := json.Marshal(object.Object["data"])
	if err != nil {
		return fields // impossible: the object was read as JSON
	}
	return append(bytes.Clone(fields), data...)
}
