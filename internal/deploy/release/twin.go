package release

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lastOfEach leaves out each object that another one of the same kind, namespace and name follows.
// Helm applies all objects of a kind at once, so that either would win, and both would be counted.
// Hooks may share a name, because they run one after the other.
func lastOfEach(objects []*unstructured.Unstructured, namespace string) []*unstructured.Unstructured {
	seen := map[string]bool{}
	var last []*unstructured.Unstructured
	for _, object := range slices.Backward(objects) {
		in := cmp.Or(object.GetNamespace(), namespace)
		key := object.GroupVersionKind().GroupKind().String() + " " + in + "/" + object.GetName()
		if !isHook(object) && object.GetName() != "" { // else the API server chooses a name
			if seen[key] {
				continue
			}
			seen[key] = true
		}
		last = append(last, object)
	}
	slices.Reverse(last)
	return last
}
