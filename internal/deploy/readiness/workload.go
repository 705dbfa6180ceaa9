package readiness

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	kindDeployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	kindStatefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	kindDaemonSet   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	kindAPIService  = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// updatedByHand returns the object for kstatus. With the update strategy OnDelete, a user replaces
// the Pods, so all of them count as updated. kstatus calls such a StatefulSet current without any
// Pod, and waits for the updates of such a DaemonSet.
func updatedByHand(object *unstructured.Unstructured) *unstructured.Unstructured {
	strategy, _, _ := unstructured.NestedString(object.Object, "spec", "updateStrategy", "type")
	kind := object.GroupVersionKind().GroupKind()
	if strategy != "OnDelete" || kind != kindStatefulSet && kind != kindDaemonSet {
		return object
	}
	updated := object.DeepCopy()
	unstructured.RemoveNestedField(updated.Object, "spec", "updateStrategy")
	status, isMap := updated.Object["status"].(map[string]any)
	if !isMap {
		return updated
	}
	for field, from := range map[string]string{
		"currentReplicas": "replicas", "currentRevision": "updateRevision", "updatedNumberScheduled": "desiredNumberScheduled",
	} {
		if value, present := status[from]; present {
			status[field] = value
		}
	}
	return updated
}

// unavailable returns the message about an APIService that the API server cannot reach; "" for all
// other objects. kstatus knows no such condition.
func unavailable(object *unstructured.Unstructured) string {
	if object.GroupVersionKind().GroupKind() != kindAPIService {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, _ := condition.(map[string]any); fields["type"] == "Available" && fields["status"] != "True" {
			return "the API server cannot use the APIService" + because(fields)
		} else if fields["type"] == "Available" {
			return ""
		}
	}
	if _, remote, _ := unstructured.NestedMap(object.Object, "spec", "service"); remote {
		return "the API server has not checked the APIService yet"
	}
	return ""
}

// paused returns the note about a Deployment whose manifest stops its roll-out; "" for all others.
func paused(object *unstructured.Unstructured) string {
	stopped, _, _ := unstructured.NestedBool(object.Object, "spec", "paused")
	if !stopped || object.GroupVersionKind().GroupKind() != kindDeployment {
		return ""
	}
	return "; spec.paused of the Deployment stops its rollout"
}
