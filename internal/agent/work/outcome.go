package work

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// Reasons of the condition Applied of a manifest.
const (
	reasonApplied          = "ManifestApplied"
	reasonInvalid          = "InvalidManifest"
	reasonKindNotServed    = "KindNotServed"
	reasonNamespaceMissing = "NamespaceMissing"
	reasonBeingDeleted     = "BeingDeleted"
	reasonOtherWork        = "AppliedByAnotherWork"
	reasonOtherOwner       = "OwnedByOthers"
	reasonNotTakenOver     = "NotTakenOver"
	reasonDrifted          = "Drifted"
	reasonContested        = "Contested"
	reasonConflict         = "FieldConflict"
	reasonImmutable        = "ImmutableField"
	reasonForbidden        = "Forbidden"
	reasonQuota            = "QuotaExceeded"
	reasonRejected         = "Rejected"
)

// Reasons of the condition DiffReported of a manifest that was compared; one that could not be has one of the above.
const (
	reasonDiffFound = "DifferencesFound"
	reasonNoDiff    = "NoDifference"
)

// outcome is what came of applying a manifest.
type outcome struct {
	// reason is one of the above; empty before the first try.
	reason  string
	message string
	// waits: it is about to be possible, and what it waits for is watched.
	waits bool
	// differences from the manifest, if it was compared, and the generation of the object that was.
	differences []placement.PatchDetail
	generation  int64
}

// compared is whether the outcome is that of a comparison alone, and whether that found a difference.
func (o outcome) compared() (differs, is bool) {
	return o.reason == reasonDiffFound, o.reason == reasonDiffFound || o.reason == reasonNoDiff
}

func (o outcome) failed() bool { return o.reason != reasonApplied }

// differs is an outcome for the differences of an object.
func differs(reason, message string, is *unstructured.Unstructured, found []placement.PatchDetail) outcome {
	o := outcome{reason: reason, message: message, differences: found[:min(len(found), maxDifferences)]}
	if is != nil {
		o.generation = is.GetGeneration()
	}
	return o
}

func refused(reason, format string, args ...any) outcome {
	return outcome{reason: reason, message: fmt.Sprintf(format, args...)}
}

// awaited is what will be possible when something comes that is watched.
func awaited(reason, format string, args ...any) outcome {
	o := refused(reason, format, args...)
	o.waits = true
	return o
}

// outcomeOf words the answer of the API server to an attempt to apply. It returns an error if there was no answer.
func outcomeOf(m manifest, err error, conflict string) (outcome, error) {
	var answer apierrors.APIStatus
	if err == nil {
		return outcome{reason: reasonApplied}, nil
	}
	if !errors.As(err, &answer) {
		return outcome{}, fmt.Errorf("applying %s: %w", m, err)
	}
	status := answer.Status()
	var causes []metav1.StatusCause
	if status.Details != nil {
		causes = status.Details.Causes
	}
	switch {
	case status.Code == http.StatusTooManyRequests:
		return outcome{}, fmt.Errorf("applying %s: %w", m, err)
	case apierrors.IsConflict(err) && len(causes) > 0:
		return refused(conflict, "%s", fieldOwners(causes, conflict)), nil
	case apierrors.IsConflict(err):
		return outcome{}, fmt.Errorf("applying %s, which somebody else has just changed: %w", m, err)
	case apierrors.IsNotFound(err) && status.Details != nil && status.Details.Kind == "namespaces":
		return awaited(reasonNamespaceMissing, "the member has no namespace %s: place that, too, or create it", m.key.Namespace), nil
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return notServed(m), nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return awaited(reasonNamespaceMissing, "namespace %s is being deleted on the member", m.key.Namespace), nil
	case apierrors.IsForbidden(err) && strings.Contains(status.Message, "exceeded quota"):
		return refused(reasonQuota, "%s: make room on the member, or raise the quota", worded(m, status)), nil
	case apierrors.IsForbidden(err):
		return refused(reasonForbidden, "%s%s", worded(m, status), unentitled(status)), nil
	case apierrors.IsInvalid(err) && immutable(causes):
		return refused(reasonImmutable, "%s: undo the change, or delete the object on the member to have it made anew", worded(m, status)), nil
	}
	return refused(reasonRejected, "%s", worded(m, status)), nil
}

func notServed(m manifest) outcome {
	return awaited(reasonKindNotServed, "the member serves no %s of %s: place its CustomResourceDefinition, too, or install it", m.gvk.Kind, m.gvk.GroupVersion())
}

// fieldOwners says who owns the fields in question, as the API server words it: conflict with "NAME" using v1.
func fieldOwners(causes []metav1.StatusCause, reason string) string {
	var fields []string
	for _, cause := range causes {
		fields = append(fields, fmt.Sprintf("%s (%s)", cause.Field, strings.TrimPrefix(cause.Message, "conflict with ")))
	}
	if reason == reasonDrifted {
		return "it was changed on the member: " + someOf(fields) + "; undo that, or set applyStrategy.whenToApply to Always"
	}
	return "others own fields of it: " + someOf(fields) + "; take them out of the manifest, or set applyStrategy.serverSideApplyConfig.force"
}

// someOf lists the first few.
func someOf(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// unentitled says what to do if it is a right that is missing.
func unentitled(status metav1.Status) string {
	if strings.Contains(status.Message, " cannot ") {
		return "; the agent's chart gives it the right with delivery=true"
	}
	return ""
}

func immutable(causes []metav1.StatusCause) bool {
	for _, cause := range causes {
		if strings.Contains(cause.Message, "immutable") || strings.Contains(cause.Message, "may not change") {
			return true
		}
	}
	return false
}

// worded is the answer of the API server. Of a Secret only the fields are named: the answer may quote what is in them.
func worded(m manifest, status metav1.Status) string {
	if m.gvk.Kind != secretKind {
		return status.Message
	}
	var fields []string
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	return strings.TrimSuffix(fmt.Sprintf("the API server says %s: %s", status.Reason, someOf(fields)), ": ")
}
