package applied

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/kube"
)

// A Job runs once per content of its manifest. Kubernetes deletes a Job with
// ttlSecondsAfterFinished after its end, and users delete others: the missing Job is no drift.

// Ends of a Job: its conditions, or unseen by the agent.
const (
	JobComplete = "Complete"
	JobFailed   = "Failed"
	JobUnseen   = "Unseen"
)

// maxWhy is the number of bytes kept of the cause of a failed Job.
const maxWhy = 300

// Run is the known run of the Job of a manifest.
type Run struct {
	// Hash is the digest of the manifest, UID the UID of the Job.
	Hash string    `json:"hash"`
	UID  types.UID `json:"uid"`
	// Ended is Complete, Failed, or empty until the agent has seen the end. Why is the cause of a
	// failure.
	Ended string `json:"ended,omitempty"`
	Why   string `json:"why,omitempty"`
}

// Over returns the end of a missing Job, and whether its manifest has had its run. passes is set if
// Kubernetes deletes the Job after its end. seen is the UID of the Job observed by this agent. A
// user deletes a running Job to run it again, or a failed Job without a TTL.
func (r Run) Over(hash string, passes bool, seen types.UID) (ended string, is bool) {
	switch {
	case r.UID == "" || r.Hash != hash:
		return "", false
	case r.Ended == JobComplete:
		return r.Ended, true
	case !passes, r.Ended == "" && r.UID == seen:
		return "", false
	}
	return cmp.Or(r.Ended, JobUnseen), true
}

// Failure returns the message for a failed Job after its deletion.
func (r Run) Failure() string {
	if r.Why == "" {
		return "the Job failed, and is gone; change it to have it run again"
	}
	return fmt.Sprintf("the Job failed (%s), and is gone; change it to have it run again", r.Why)
}

// End returns the run with the end of its Job.
func (r Run) End(ended, why string) Run {
	r.Ended = ended
	if ended == JobFailed {
		r.Why = kube.Clip(why, maxWhy)
	}
	return r
}

// IsJob reports whether a kind is Job.
func IsJob(kind schema.GroupKind) bool { return kind == schema.GroupKind{Group: "batch", Kind: "Job"} }

// Passes reports whether Kubernetes deletes an object after its work: it is a Job with
// ttlSecondsAfterFinished.
func Passes(object *unstructured.Unstructured) bool {
	after, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "ttlSecondsAfterFinished")
	return after != nil && err == nil && IsJob(object.GroupVersionKind().GroupKind())
}

// EndOf returns the end of a Job, Complete or Failed; empty if it has not ended, or the object is
// no Job.
func EndOf(object *unstructured.Unstructured) string {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil || !IsJob(object.GroupVersionKind().GroupKind()) {
		return ""
	}
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if kind := fields["type"]; fields["status"] == "True" && (kind == JobComplete || kind == JobFailed) {
			return kind.(string)
		}
	}
	return ""
}
