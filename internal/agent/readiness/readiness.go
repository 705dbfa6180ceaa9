// Package readiness says of an object that was placed or delivered whether it does what it is there for: a Deployment has rolled out, a
// Job has ended. Both doors judge by it.
//
// Its invariant: it looks at nothing but the object. The rules and the words are kstatus's; what it adds is to tell kinds of which nothing
// can be known from those that are well.
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
	Progressing State = "InProgress"
	// Terminating is an object that is being deleted.
	Terminating State = "Terminating"
	// Failed is an object that will not get there by itself.
	Failed State = "Failed"
	// Unknown is an object whose status cannot be understood.
	Unknown State = "Unknown"
	// Untracked is an object that says nothing of itself, of a kind that Kubernetes does not define.
	Untracked State = "Untracked"
)

// Result is the state of an object, and for one that is not ready a sentence about it.
type Result struct {
	State   State
	Message string
}

// Stands is whether the object is as far as it will come by itself, as far as anybody can tell.
func (r Result) Stands() bool { return r.State == Ready || r.State == Untracked }

// Of judges an object.
func Of(object *unstructured.Unstructured) Result {
	computed, err := status.Compute(object)
	switch {
	case err != nil:
		return Result{Unknown, "its status cannot be understood: " + err.Error()}
	case computed.Status != status.CurrentStatus:
		return Result{State(computed.Status), computed.Message}
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
