package release

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/kube"
)

// maxRepeated is the maximum number of repeated objects in a note.
const maxRepeated = 3

// lastOfEach leaves out each object followed by another one of the same kind, namespace and name.
// Helm applies all objects of a kind at once: either would win, and both would be counted. Hooks
// may share a name, because they run one after the other. repeated names the objects with left out
// content.
func lastOfEach(objects []*unstructured.Unstructured, namespace string) (last []*unstructured.Unstructured, repeated []string) {
	seen := map[string]*unstructured.Unstructured{}
	for _, object := range slices.Backward(objects) {
		objectNamespace := cmp.Or(object.GetNamespace(), namespace)
		key := object.GroupVersionKind().GroupKind().String() + " " + objectNamespace + "/" + object.GetName()
		if !isHook(object) && object.GetName() != "" { // else the API server chooses a name
			if later := seen[key]; later != nil {
				if !equality.Semantic.DeepEqual(contentOf(object), contentOf(later)) {
					repeated = append(repeated, kube.Name(object.GetKind(), objectNamespace, object.GetName()))
				}
				continue
			}
			seen[key] = object
		}
		last = append(last, object)
	}
	slices.Reverse(last)
	slices.Sort(repeated)
	return last, slices.Compact(repeated)
}

// contentOf returns an object without the name of its file.
func contentOf(object *unstructured.Unstructured) map[string]any {
	without := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	without.Object["metadata"] = maps.Clone(metadataOf(object))
	annotations := object.GetAnnotations()
	if delete(annotations, annotationFile); len(annotations) == 0 {
		annotations = nil
	}
	without.SetAnnotations(annotations)
	return without.Object
}

func metadataOf(object *unstructured.Unstructured) map[string]any {
	metadata, _ := object.Object["metadata"].(map[string]any)
	return metadata
}

// noteRepeated notes the omitted objects, for the status.
func (r Request) noteRepeated(repeated []string) {
	delete(r.Chart.Metadata.Annotations, annotationRepeated) // the author of a chart may have one
	if len(repeated) > 0 {
		r.Chart.Metadata.Annotations[annotationRepeated] = kube.JoinNames(repeated[:min(len(repeated), maxRepeated)], len(repeated))
	}
}
