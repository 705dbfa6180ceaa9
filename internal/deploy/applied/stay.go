package applied

import (
	"slices"

	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var holdData = []schema.GroupKind{
	{Kind: "Namespace"}, {Kind: "PersistentVolumeClaim"}, {Kind: "PersistentVolume"}, {
		Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition",
	},
}

// HoldsData reports whether deleting an object of a kind deletes its data.
func HoldsData(kind schema.GroupKind) bool { return slices.Contains(holdData, kind) }

// Keeps reports whether an object has the annotation helm.sh/resource-policy: keep. Users also
// protect objects without Helm this way.
func Keeps(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy
}
