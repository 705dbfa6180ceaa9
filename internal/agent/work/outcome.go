package work

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the condition Applied of a manifest.
const (
	reasonApplied          = "ManifestApplied"
	reasonInvalid          = "InvalidManifest"
	reasonUnsupported      = "NotSupported"
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
	reasonRejected         = "Rejected"
)

// outcome is what came of applying a manifest.
type outcome struct {
	// reason is one of the above; empty before the first try.
	reason  string
	message string
	// waits: it is about to be possible, and what it waits for is watched.
	waits bool
}

func (o outcome) failed() bool { return o.reason != reasonApplied }

func refused(reason, format string, args ...any) outcome {
	return outcome{reason: reason, message: fmt.Sprintf(format, args...)}
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
	case apierrors.IsNotFound(err) && status.Details != nil && status.Details.Kind == "namespaces":
		return outcome{reasonNamespaceMissing, fmt.Sprintf("the member has no namespace %s: place that, too, or create it", m.key.Namespace), true}, nil
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return notServed(m), nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return outcome{reasonNamespaceMissing, fmt.Sprintf("namespace %s is being deleted on the member", m.key.Namespace), true}, nil
	case apierrors.IsForbidden(err):
		return refused(reasonForbidden, "%s%s", worded(m, status), unentitled(status)), nil
	case apierrors.IsInvalid(err) && immutable(causes):
		return refused(reasonImmutable, "%s: undo the change, or delete the object on the member to have it made anew", worded(m, status)), nil
	}
	return refused(reasonRejected, "%s", worded(m, status)), nil
}

func notServed(m manifest) outcome {
	return outcome{reasonKindNotServed, fmt.Sprintf("the member serves no %s of %s: place its CustomResourceDefinition, too, or install it", m.gvk.Kind, m.gvk.GroupVersion()), true}
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
