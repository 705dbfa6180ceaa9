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

// Conditions of an ended Job.
const (
	JobComplete = "Complete"
	JobFailed   = "Failed"
)

// IsJob reports whether a kind is Job.
func IsJob(kind schema.GroupKind) bool { return kind == schema.GroupKind{Group: "batch", Kind: "Job"} }

// Passes reports whether Kubernetes deletes an object after its work: it is a Job with
// ttlSecondsAfterFinished.
func Passes(object *unstructured.Unstructured) bool {
	after, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "ttlSecondsAfterFinished")
	return after != nil && err == nil && IsJob(object.GroupVersionKind().GroupKind())
}

// EndOf returns the end of a Job, Complete or Failed; empty if it has not ended, or the object is
// no Job.
func EndOf(object *unstructured.Unstructured) string {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil || !IsJob(object.GroupVersionKind().GroupKind()) {
		return ""
	}
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if kind := fields["type"]; fields["status"] == "True" && (kind == JobComplete || kind == JobFailed) {
			return kind.(string)
		}
	}
	return ""
}
