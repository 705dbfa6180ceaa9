package applied

import (
	"slices"

	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var holdData = []schema.GroupKind{
	{Kind: "Namespace"}, {Kind: "PersistentVolumeClaim"}, {Kind: "PersistentVolume"}, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

// HoldsData says whether deleting an object of a kind deletes what it holds.
func HoldsData(kind schema.GroupKind) bool { return slices.Contains(holdData, kind) }

// Keeps says whether an object is annotated with helm.sh/resource-policy: keep. Users protect objects so
// that were not made by Helm, too.
func Keeps(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy
}

// The conditions of a Job that has ended.
const (
	JobComplete = "Complete"
	JobFailed   = "Failed"
)

// IsJob says whether a kind is that of Jobs.
func IsJob(kind schema.GroupKind) bool { return kind == schema.GroupKind{Group: "batch", Kind: "Job"} }

// Passes says whether Kubernetes deletes an object when it has done its work: it is a Job with
// ttlSecondsAfterFinished.
func Passes(object *unstructured.Unstructured) bool {
	after, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "ttlSecondsAfterFinished")
	return after != nil && err == nil && IsJob(object.GroupVersionKind().GroupKind())
}

// EndOf says how a Job has ended, Complete or Failed; empty if it has not, or if the object is none.
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
