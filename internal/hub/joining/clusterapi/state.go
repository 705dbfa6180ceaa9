package clusterapi

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// maxRefusal bounds the text about a refusal.
const maxRefusal = 1024

// A cluster of Cluster API that is being deleted:
//
//	        pause            delete the Cluster           resume
//	None ----------> Leave ---------------------> Wait ----------> None
//	                   |                            |   the Cluster is gone, or the time is over
//	                   +------------ Resumed -------+   a user has resumed it

// step is the next step of the leaver.
type step string

// The steps.
const (
	// stepNone: the hub has nothing to do with the cluster.
	stepNone step = "None"
	// stepHold: the hub pauses the cluster.
	stepHold step = "Hold"
	// stepLeave: the cluster is paused, and the hub deletes the Cluster.
	stepLeave step = "Leave"
	// stepWait: the Cluster leaves.
	stepWait step = "Wait"
	// stepGo: the Cluster has left, and the hub resumes the cluster.
	stepGo step = "Go"
	// stepGiveUp: the Cluster has not left in time, and the hub resumes the cluster.
	stepGiveUp step = "GiveUp"
	// stepResumed: a user has resumed the cluster, and the Cluster is still there.
	stepResumed step = "Resumed"
)

// observed is a cluster of Cluster API and its Cluster.
type observed struct {
	// theirs is the cluster of Cluster API; nil if it is not being deleted.
	theirs *unstructured.Unstructured
	// member is the Cluster that the hub has registered for it; nil if there is none.
	member *fleet.Cluster
	// wanted: the workspace registers clusters of Cluster API.
	wanted bool
	// limit is how long the deletion waits; zero for not at all.
	limit time.Duration
}

// decide returns the next step.
func decide(o observed, now time.Time) step {
	if o.theirs == nil {
		return stepNone
	}
	_, marked := o.theirs.GetAnnotations()[fleet.AnnotationPausedUntilLeft]
	field, _, _ := unstructured.NestedBool(o.theirs.Object, "spec", "paused")
	over := o.limit == 0 || !o.wanted || !now.Before(o.deadline())
	switch {
	case !marked && (paused(o.theirs) || over || o.member == nil):
		return stepNone
	case !marked:
		return stepHold
	case !field && o.member == nil:
		return stepNone
	case !field:
		return stepResumed
	case o.member == nil:
		return stepGo
	case over:
		return stepGiveUp
	case o.member.DeletionTimestamp == nil || len(o.unasked()) > 0:
		return stepLeave
	}
	return stepWait
}

// deadline is when the hub no longer holds the deletion.
func (o observed) deadline() time.Time {
	return o.theirs.GetDeletionTimestamp().Add(o.limit)
}

// waiting says what waits for what, since when, until when, and how to end it. It does not change.
func (o observed) waiting() string {
	return fmt.Sprintf("Cluster %s of Cluster API is being deleted since %s. The hub has it wait until Cluster %s has left the fleet, "+
		"at most until %s. To delete its machines at once: %s", o.theirs.GetName(), o.theirs.GetDeletionTimestamp().UTC().Format(time.RFC3339),
		o.member.Name, o.deadline().UTC().Format(time.RFC3339), o.wayOut())
}

// wayOut returns the command that resumes the cluster. It has only names that Kubernetes allows.
func (o observed) wayOut() string {
	return fmt.Sprintf(`kubectl -n %s patch clusters.cluster.x-k8s.io %s --type merge -p '{"spec":{"paused":false}}'`,
		o.theirs.GetNamespace(), o.theirs.GetName())
}
