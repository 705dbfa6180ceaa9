package selection

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// strip returns an object as its author wrote it, without what the hub's servers and controllers
// have added. Fields that every API server defaults alike, such as the spec of a Namespace, stay:
// an agent that compares whole objects would report them as a difference.
func strip(original *unstructured.Unstructured) *unstructured.Unstructured {
	o := original.DeepCopy()
	drop := func(fields ...string) { unstructured.RemoveNestedField(o.Object, fields...) }
	stripServer(o)
	drop("metadata", "finalizers")
	stripAnnotations(o)
	if o.GroupVersionKind().Group == "batch" && o.GetKind() == "Job" {
		stripJob(o, drop)
	}
	if o.GroupVersionKind().Group != "" {
		return o
	}
	switch o.GetKind() {
	case "Service":
		stripService(o, drop)
	case "PersistentVolumeClaim":
		drop("spec", "volumeName")
	case "PersistentVolume":
		drop("spec", "claimRef")
	case "ServiceAccount":
		drop("secrets")
	}
	return o
}

// stripServer removes the fields that only a server writes, or that mean something
// in one cluster only.
func stripServer(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds",
		"managedFields", "selfLink", "ownerReferences"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
}

// leaderAnnotation has who leads and since when, as older leader elections write it
// every other second.
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

func stripAnnotations(o *unstructured.Unstructured) {
	annotations := o.GetAnnotations()
	for key := range annotations {
		if key == corev1.LastAppliedConfigAnnotation || key == "deployment.kubernetes.io/revision" || key == leaderAnnotation ||
			strings.HasPrefix(key, "pv.kubernetes.io/") ||
			strings.HasPrefix(key, "volume.kubernetes.io/") || strings.HasPrefix(key, "deprecated.daemonset.template") {
			delete(annotations, key)
		}
	}
	if o.SetAnnotations(annotations); len(annotations) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations")
	}
}

func stripLabels(o *unstructured.Unstructured, keys ...string) {
	labels := o.GetLabels()
	for _, key := range keys {
		delete(labels, key)
	}
	if o.SetLabels(labels); len(labels) == 0 {
		unstructured.RemoveNestedField(o.Object, "metadata", "labels")
	}
}

// stripService removes the addresses and ports that the hub allocated. A headless
// Service stays headless.
func stripService(o *unstructured.Unstructured, drop func(...string)) {
	if ip, _, err := unstructured.NestedString(o.Object, "spec", "clusterIP"); err != nil || ip != corev1.ClusterIPNone {
		drop("spec", "clusterIP")
		drop("spec", "clusterIPs")
	}
	if policy, _, err := unstructured.NestedString(o.Object, "spec", "ipFamilyPolicy"); err == nil &&
		policy == string(corev1.IPFamilyPolicySingleStack) {
		drop("spec", "ipFamilies")
		drop("spec", "ipFamilyPolicy")
	}
	drop("spec", "healthCheckNodePort")
	ports, _, err := unstructured.NestedSlice(o.Object, "spec", "ports")
	if err != nil {
		return
	}
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok {
			delete(fields, "nodePort")
		}
	}
	if len(ports) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, ports, "spec", "ports") // NestedSlice has read it
	}
}

// stripJob removes the selector that the hub generated, and its labels.
func stripJob(o *unstructured.Unstructured, drop func(...string)) {
	if manual, _, err := unstructured.NestedBool(o.Object, "spec", "manualSelector"); err == nil && manual {
		return
	}
	drop("spec", "selector")
	for _, key := range []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"} {
		drop("spec", "template", "metadata", "labels", key)
		stripLabels(o, key)
	}
}
