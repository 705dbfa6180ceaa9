// Package readiness says of an applied object whether it does what it is there for: a Deployment has rolled out, a Job has ended.
//
// Its invariant: it looks at nothing but the object. The rules are kstatus's; what it adds is to tell kinds of which nothing can be
// known from those that are well.
package readiness

import (
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is how far an object is.
type State string

const (
	// Ready is an object that has become what was asked for, or that has nothing to become.
	Ready State = "Ready"
	// Progressing is an object that is on its way.
	Progressing State = "Progressing"
	// Failed is an object that will not get there by itself.
	Failed State = "Failed"
	// Untracked is an object that says nothing of itself, of a kind that Kubernetes does not define.
	Untracked State = "Untracked"
)

// Result is the state of an object, and for one that is not ready a sentence about it.
type Result struct {
	State   State
	Message string
}

// Of judges an object.
func Of(object *unstructured.Unstructured) Result {
	computed, err := status.Compute(object)
	switch {
	case err != nil:
		return Result{Failed, "its status cannot be understood: " + err.Error()}
	case computed.Status == status.FailedStatus:
		return Result{Failed, computed.Message}
	case computed.Status != status.CurrentStatus:
		return Result{Progressing, computed.Message}
	case !tellsOfItself(object):
		return Result{Untracked, "its kind has no status to go by"}
	}
	return Result{State: Ready}
}

// tellsOfItself is whether being current means something: kinds of Kubernetes are known, others have to report.
func tellsOfItself(object *unstructured.Unstructured) bool {
	group := object.GroupVersionKind().Group
	if !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") {
		return true
	}
	_, conditions, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if conditions && err == nil {
		return true
	}
	_, observed, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	return observed && err == nil
}
