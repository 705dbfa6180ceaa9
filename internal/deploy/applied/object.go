package applied

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FieldDigest returns a digest of the fields owned by a manager through server-side apply; 0 if it
// owns none. If another client changes an owned field, the manager loses it. An unchanged digest
// therefore means unchanged fields.
func FieldDigest(object *unstructured.Unstructured, manager string) uint64 {
	for _, entry := range object.GetManagedFields() {
		if isOf(entry, manager) {
			return digest(withTexts(object, entry.FieldsV1.GetRawBytes()))
		}
	}
	return 0
}

// ContentDigest returns a digest of an object without its status and the counters of the API
// server.
func ContentDigest(object *unstructured.Unstructured) uint64 {
	text, err := json.Marshal(Content(object))
	if err != nil {
		return digest([]byte(object.GetResourceVersion())) // impossible: the object was read as JSON
	}
	return digest(text)
}

// digest returns a part of a cryptographic digest. A client must not be able to choose other
// content with the same digest.
func digest(text []byte) uint64 {
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:])
}

// serverSet are the fields set by the API server.
var serverSet = [][]string{
	{"status"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"},
	{"metadata", "uid"}, {"metadata", "creationTimestamp"}, {"metadata", "selfLink"},
}

// Content returns an object without the fields of the API server, and without others.
func Content(object *unstructured.Unstructured, without ...[]string) map[string]any {
	content := object.DeepCopy().Object
	for _, path := range slices.Concat(serverSet, without) {
		unstructured.RemoveNestedField(content, path...)
	}
	return content
}

// Finalizers returns the finalizers of an object in deletion, except for those removed by
// Kubernetes itself.
func Finalizers(object *unstructured.Unstructured) []string {
	if object.GetDeletionTimestamp() == nil {
		return nil
	}
	return slices.DeleteFunc(object.GetFinalizers(), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
}
