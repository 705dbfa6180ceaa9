package readiness

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	kindJob     = schema.GroupKind{Group: "batch", Kind: "Job"}
	kindCronJob = schema.GroupKind{Group: "batch", Kind: "CronJob"}
)

// ofBatch returns the readiness of an unfinished Job or of a suspended CronJob, and false for all
// other objects. kstatus calls a running Job current.
func ofBatch(object *unstructured.Unstructured) (Result, bool) {
	kind := object.GroupVersionKind().GroupKind()
	if object.GetDeletionTimestamp() != nil || kind != kindJob && kind != kindCronJob {
		return Result{}, false
	}
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
	if kind == kindCronJob {
		return Result{State: Ready, Message: "suspended by its manifest"}, suspended && suspendedByManifest(object)
	}
	if failure, ended := jobEnd(object); ended {
		return Result{Failed, failure}, failure != ""
	}
	active, _, _ := unstructured.NestedInt64(object.Object, "status", "active")
	failed, _, _ := unstructured.NestedInt64(object.Object, "status", "failed")
	switch {
	case suspended && suspendedByManifest(object):
		return Result{State: Ready, Message: "suspended by its manifest"}, true
	case suspended:
		return Result{Progressing, "the Job is suspended, though its manifest does not say so"}, true
	case active > 0 || failed > 0:
		return Result{Progressing, fmt.Sprintf("the Job is running: active %d, failed %d", active, failed)}, true
	}
	if _, started, _ := unstructured.NestedString(object.Object, "status", "startTime"); started {
		return Result{Progressing, "the Job is running"}, true
	}
	return Result{Progressing, "the Job is not started"}, true
}

// jobEnd reports whether a Job has ended, and why it failed; empty after a success.
func jobEnd(object *unstructured.Unstructured) (failure string, ended bool) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["status"] != "True" {
			continue
		}
		switch fields["type"] {
		case "Complete":
			return "", true
		case "Failed":
			return "the Job failed" + because(fields), true
		}
	}
	return "", false
}

// because returns the reason and message of a condition.
func because(condition map[string]any) string {
	var parts []string
	for _, field := range []string{"reason", "message"} {
		if text, _ := condition[field].(string); text != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ": ")
}

// suspendedByManifest reports whether the manifest suspends the object. An admission webhook, for
// example of Kueue, suspends Jobs too. Then no manager owns the field by server-side apply.
func suspendedByManifest(object *unstructured.Unstructured) bool {
	applied := false
	for _, entry := range object.GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		applied = true
		if strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:suspend"`) {
			return true
		}
	}
	return !applied // written without server-side apply: the field is the only evidence
}
