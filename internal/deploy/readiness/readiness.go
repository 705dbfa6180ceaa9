// Package readiness computes whether an object of a Bundle or Work does what it is there for: a Deployment has rolled out, a Job has ended.
//
// Its invariant: the result depends on nothing but the object. The rules and messages are those of kstatus; beyond these, a kind whose objects report
// nothing is Untracked and not Ready.
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
	// Untracked is an object that reports nothing, of a kind that Kubernetes does not define.
	Untracked State = "Untracked"
)

// Result is the state of an object, and for one that is not ready a sentence about it.
type Result struct {
	State   State
	Message string
}

// OK says whether nothing is known to be wrong with the object or outstanding.
func (r Result) OK() bool { return r.State == Ready || r.State == Untracked }

// Of computes the readiness of an object.
func Of(object *unstructured.Unstructured) Result {
	computed, err := status.Compute(object)
	switch {
	case err != nil:
		return Result{Unknown, "its status cannot be understood: " + err.Error()}
	case computed.Status != status.CurrentStatus:
		return Result{State(computed.Status), computed.Message}
	case !reportsStatus(object):
		return Result{Untracked, "its kind has no status to go by"}
	}
	return Result{State: Ready}
}

// reportsStatus says whether kstatus knows how the object is: the kinds of Kubernetes are known, objects of others have to report conditions or an
// observed generation.
func reportsStatus(object *unstructured.Unstructured) bool {
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
