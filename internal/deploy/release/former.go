package release

import (
	"slices"

	helm "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-fleet/muster/internal/deploy/applied"
)

// Former returns the objects of earlier revisions missing in the release, without hooks and without
// objects with a keep policy.
func (c *Cluster) Former(s Summary, now []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	former, err := c.allObjects(s)
	if err != nil {
		return nil, err
	}
	current := map[string]bool{}
	for _, object := range now {
		current[identity(object)] = true
	}
	return slices.DeleteFunc(former, func(object *unstructured.Unstructured) bool {
		return current[identity(object)] || applied.Keeps(object) || object.GetAnnotations()[helm.HookAnnotation] != ""
	}), nil
}

func identity(object *unstructured.Unstructured) string {
	return object.GroupVersionKind().GroupKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
}
