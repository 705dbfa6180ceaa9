package manifest

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podPaths are the paths of the Pod spec in an object of Kubernetes.
var podPaths = []string{"spec", "template.spec", "spec.template.spec", "spec.jobTemplate.spec.template.spec"}

// eachPod calls visit with each Pod spec of an object of Kubernetes and its path. A spec of another
// kind has none of the fields.
func eachPod(o *unstructured.Unstructured, visit func(path string, spec map[string]any)) {
	if !slices.Contains(templated, o.GroupVersionKind().Group) {
		return
	}
	for _, path := range podPaths {
		if spec, there := mapAt(o.Object, path); there {
			visit(path, spec)
		}
	}
}

// eachContainer calls visit with each container of an object of Kubernetes and its path.
func eachContainer(o *unstructured.Unstructured, visit func(path string, container map[string]any)) {
	eachPod(o, func(path string, spec map[string]any) {
		for _, field := range []string{"initContainers", "containers"} {
			containers, _ := spec[field].([]any)
			for i, one := range containers {
				container, _ := one.(map[string]any)
				visit(fmt.Sprintf("%s[%d]", joined(path, field), i), container)
			}
		}
	})
}
