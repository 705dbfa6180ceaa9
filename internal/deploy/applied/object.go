package applied

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FieldDigest is a digest of the fields that a manager owns by server-side apply; 0 if it owns none. Kubernetes takes a field away from its
// owner when another client gives it another value, so that no owned field was changed as long as the digest is the same.
func FieldDigest(object *unstructured.Unstructured, manager string) uint64 {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil {
			return digest(entry.FieldsV1.GetRawBytes())
		}
	}
	return 0
}

// ContentDigest is a digest of an object without its status and what the API server counts.
func ContentDigest(object *unstructured.Unstructured) uint64 {
	text, err := json.Marshal(Content(object))
	if err != nil {
		return digest([]byte(object.GetResourceVersion())) // impossible: the object was read as JSON
	}
	return digest(text)
}

// digest is a part of a cryptographic one: who changes an object must not be able to choose its
// content so that the digest stays the same.
func digest(text []byte) uint64 {
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:])
}

// serverSet are the fields that the API server sets.
var serverSet = [][]string{
	{"status"}, {"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "generation"},
	{"metadata", "uid"}, {"metadata", "creationTimestamp"}, {"metadata", "selfLink"},
}

// Content is an object without the fields that the API server sets, and without others.
func Content(object *unstructured.Unstructured, without ...[]string) map[string]any {
	content := object.DeepCopy().Object
	for _, path := range slices.Concat(serverSet, without) {
		unstructured.RemoveNestedField(content, path...)
	}
	return content
}

// Finalizers are the finalizers that an object which is being deleted waits for, but those that Kubernetes removes by itself.
func Finalizers(object *unstructured.Unstructured) []string {
	if object.GetDeletionTimestamp() == nil {
		return nil
	}
	return slices.DeleteFunc(object.GetFinalizers(), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
}
