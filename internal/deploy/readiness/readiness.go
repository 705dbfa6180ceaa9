// Package readiness computes whether an object of a Bundle or Work is ready: a Deployment has
// rolled out, a Job has ended.
//
// Its invariant: the result depends only on the object. The rules and messages come from kstatus.
// In addition, a kind without reported status is Untracked and not Ready. A running Job is
// Progressing, and a Job or CronJob suspended by its manifest is Ready. With the update strategy
// OnDelete, only the number of ready Pods counts. An APIService is Ready when it is available.
package readiness

import (
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is the readiness of an object.
type State string

const (
	// Ready is an object in its wanted state, or without any state to reach.
	Ready State = "Ready"
	// Progressing is an object on its way to Ready.
	Progressing State = "InProgress"
	// Terminating is an object in deletion.
	Terminating State = "Terminating"
	// Failed is an object with a permanent failure.
	Failed State = "Failed"
	// Unknown is an object with an unintelligible status.
	Unknown State = "Unknown"
	// Untracked is an object without reported status, of a kind outside Kubernetes.
	Untracked State = "Untracked"
)

// Result is the state of an object, with a sentence unless it is ready. A suspended object is ready
// with a sentence.
type Result struct {
	State   State
	Message string
}

// OK reports whether no problem of the object is known and nothing is outstanding.
func (r Result) OK() bool { return r.State == Ready || r.State == Untracked }

// Of computes the readiness of an object.
func Of(object *unstructured.Unstructured) Result {
	if result, is := ofBatch(object); is {
		return result
	}
	computed, err := status.Compute(updatedByHand(object))
	switch {
	case err != nil:
		return Result{Unknown, "its status is unreadable: " + err.Error()}
	case computed.Status != status.CurrentStatus:
		return Result{State(computed.Status), computed.Message + paused(object)}
	case unavailable(object) != "":
		return Result{Progressing, unavailable(object)}
	case !reportsStatus(object):
		return Result{Untracked, "its kind has no status to check"}
	}
	return Result{State: Ready}
}

// reportsStatus reports whether kstatus can compute the readiness of an object. It knows the kinds
// of Kubernetes; other objects must report conditions or an observed generation.
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
