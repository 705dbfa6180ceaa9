package override

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// FuzzPatch applies overrides of tenants. No override changes which object it is.
func FuzzPatch(f *testing.F) {
	const object = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"team","labels":{"a":"b"}},"spec":{"a":[1]}}`
	f.Add([]byte(object), "add", "/metadata/labels/x", []byte(`"${MEMBER-CLUSTER-NAME}"`), "env", "dev")
	f.Add([]byte(object), "replace", "/metadata", []byte(`{"labels":{}}`), "", "")
	f.Add([]byte(object), "remove", "/spec/a/0", []byte(nil), "", "")
	f.Add([]byte(object), "add", "/spec/a/9999999999", []byte(`"${MEMBER-CLUSTER-LABEL-KEY-env}"`), "env", "${MEMBER-CLUSTER-NAME}")
	f.Add([]byte(object), "replace", "/kin~0d", []byte(`[]`), "", "")
	f.Fuzz(func(t *testing.T, text []byte, op, path string, value []byte, key, label string) {
		before := &unstructured.Unstructured{}
		if json.Unmarshal(text, &before.Object) != nil || before.Object == nil {
			return
		}
		given := placement.JSONPatchOverride{Operator: op, Path: path}
		if value != nil {
			given.Value = &runtime.RawExtension{Raw: value}
		}
		o, problem := parse(given)
		if problem != "" {
			return
		}
		operations, problem := substitute([]operation{o}, Member{Name: "edge-1", Labels: map[string]string{key: label}})
		if problem != "" {
			return
		}
		after, problem := patch(before, operations)
		if problem == "" && (after.GetName() != before.GetName() || after.GetNamespace() != before.GetNamespace() ||
			after.GetKind() != before.GetKind() || after.GetAPIVersion() != before.GetAPIVersion()) {
			t.Errorf("%s %s makes another object of %s", op, path, text)
		}
	})
}
