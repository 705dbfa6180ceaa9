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
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// outcome is the result of applying or comparing a manifest.
type outcome struct {
	// reason is one of the above; empty before the first attempt.
	reason  string
	message string
	// waits is set if the manifest waits for a watched Namespace or CustomResourceDefinition.
	waits bool
	// ran is the ended run of a deleted Job; empty if the object exists.
	ran applied.Run
	// differences are the differences from the manifest after a comparison; generation is the compared
	// generation of the object.
	differences []placement.PatchDetail
	generation  int64
}

// compared reports whether a comparison found a difference, and whether the outcome comes from a
// comparison.
func (o outcome) compared() (differs, is bool) {
	return o.reason == reasons.DifferencesFound, o.reason == reasons.DifferencesFound || o.reason == reasons.NoDifference
}

func (o outcome) failed() bool { return o.reason != reasons.ManifestApplied }

// differs returns an outcome with the differences of an object.
func differs(reason, message string, is *unstructured.Unstructured, found []placement.PatchDetail) outcome {
	o := outcome{reason: reason, message: message, differences: found[:min(len(found), maxDifferences)]}
	if is != nil {
		o.generation = is.GetGeneration()
	}
	return o
}

func failedWith(reason, format string, args ...any) outcome {
	return outcome{reason: reason, message: fmt.Sprintf(format, args...)}
}

// waitsFor returns the outcome of a manifest waiting for a watched object.
func waitsFor(reason, format string, args ...any) outcome {
	o := failedWith(reason, format, args...)
	o.waits = true
	return o
}

// outcomeOf translates the answer of the API server to an apply request. It returns an error if
// there was no answer, or only a temporary one.
func outcomeOf(m manifest, err error, conflict string) (outcome, error) {
	var answer apierrors.APIStatus
	if err == nil {
		return outcome{reason: reasons.ManifestApplied}, nil
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
		return failedWith(conflict, "%s", fieldOwners(causes, conflict)), nil
	case apierrors.IsConflict(err):
		return outcome{}, fmt.Errorf("applying %s, which another client has just changed: %w", m, err)
	case apierrors.IsNotFound(err) && status.Details != nil && status.Details.Kind == "namespaces":
		return waitsFor(reasons.NamespaceMissing, "the member has no namespace %s: place that, too, or create it", m.key.Namespace), nil
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return notServed(m), nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return waitsFor(reasons.NamespaceMissing, "namespace %s is being deleted on the member", m.key.Namespace), nil
	case apierrors.IsForbidden(err) && strings.Contains(status.Message, "exceeded quota"):
		return failedWith(reasons.QuotaExceeded, "%s: make room on the member, or raise the quota", answerOf(m, status)), nil
	case apierrors.IsForbidden(err):
		return failedWith(reasons.Forbidden, "%s%s", answerOf(m, status), missingRight(status)), nil
	case apierrors.IsInvalid(err) && immutable(causes):
		return failedWith(reasons.ImmutableField, "%s: undo the change, or delete the object on the member, and the agent creates it again",
			answerOf(m, status)), nil
	}
	return failedWith(reasons.Rejected, "%s", answerOf(m, status)), nil
}

func notServed(m manifest) outcome {
	return waitsFor(reasons.KindNotServed, "the member serves no %s of %s: place its CustomResourceDefinition, too, or install it",
		m.gvk.Kind, m.gvk.GroupVersion())
}

// fieldOwners names the owners of the fields in question. The API server writes: conflict with
// "NAME" using v1.
func fieldOwners(causes []metav1.StatusCause, reason string) string {
	var fields []string
	for _, cause := range causes {
		fields = append(fields, fmt.Sprintf("%s (%s)", cause.Field, strings.TrimPrefix(cause.Message, "conflict with ")))
	}
	if reason == reasons.Drifted {
		return "it was changed on the member: " + applied.Join(fields) + "; undo that, or set applyStrategy.whenToApply to Always"
	}
	return "others own fields of it: " + applied.Join(fields) +
		"; take them out of the manifest, or set applyStrategy.serverSideApplyConfig.force"
}

// missingRight returns advice about a missing right.
func missingRight(status metav1.Status) string {
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

// answerOf returns the message of the API server. For a Secret it names only the fields, because
// the message may quote values.
func answerOf(m manifest, status metav1.Status) string {
	if m.gvk.Kind != secretKind {
		return kube.ShortenValues(status.Message)
	}
	var fields []string
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	return strings.TrimSuffix(fmt.Sprintf("the API server says %s: %s", status.Reason, applied.Join(fields)), ": ")
}
