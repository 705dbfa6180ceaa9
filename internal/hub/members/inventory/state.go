package inventory

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
)

// manager is the hub's name as a cluster manager.
const manager = "muster"

// minInterval separates two writes of a status without urgency, and two changes of a control plane
// from healthy to unhealthy. KEP-4322 allows one write per 30 s and object on average.
const minInterval = 30 * time.Second

// reportGrace bounds the wait of a new profile for the first report of its member. The hub then
// writes the profile once, complete. Many joins at once, and an import, take longer than some
// seconds.
const reportGrace = 30 * time.Second

// action is the next step for the profile of a membership object.
//
//	           member created         member or its labels change
//	(none) ────────────────► create ──────────────────────────► update
//	   ▲                       │ ▲                                 │
//	   │     member deleted    ▼ │ deleted by hand                 ▼
//	   └─────── remove ◄──── updateStatus ◄────────────────────────┘
//
// The hub refuses to write a profile of another manager.
type action string

const (
	idle         action = "Idle"
	refuse       action = "Refuse"
	create       action = "Create"
	update       action = "Update"
	updateStatus action = "UpdateStatus"
	remove       action = "Remove"
)

// observed holds the inputs of a decision about a profile.
type observed struct {
	// key of the membership object.
	key types.NamespacedName
	// record is nil if there is none, or if another manager owns it.
	record *record
	report *clusterv1beta1.InternalMemberCluster // nil if there is none
	// namespace of the profiles; empty if the inventory is off.
	namespace string
	current   *inventory.ClusterProfile // nil if there is none in the namespace
	// strays are the hub's own profiles of the same name in other namespaces, from earlier settings.
	strays []client.Object
	// statusWritten is the time of the last write of the status; zero if none since the hub started.
	statusWritten time.Time
}

// decision is the next action with its inputs.
type decision struct {
	action action
	// profile is the desired profile.
	profile *inventory.ClusterProfile
	// skipped lists the properties of the member too long for a profile.
	skipped []string
	// wake is the delay until time alone changes the decision; zero if only an event can.
	wake time.Duration
}

// Ours reports whether a profile is the hub's. Unlike a label, spec.clusterManager is immutable.
func Ours(profile *inventory.ClusterProfile) bool {
	return profile.Spec.ClusterManager.Name == manager
}

// decide is total and depends only on its arguments.
func decide(o observed, now time.Time) decision {
	switch {
	case o.current != nil && !Ours(o.current):
		if o.record == nil {
			return decision{action: idle}
		}
		return decision{action: refuse}
	case o.record == nil && o.current == nil, o.namespace == "":
		return decision{action: idle}
	case o.record == nil:
		return decision{action: remove}
	case !o.record.reconciled:
		return decision{action: idle}
	}
	profile, skipped := describe(o, now)
	next := decision{action: idle, profile: profile, skipped: skipped}
	if o.current != nil && !(equality.Semantic.DeepEqual(profile.ObjectMeta, o.current.ObjectMeta) && profile.Spec == o.current.Spec) {
		next.action = update
		return next
	}
	write, wait := nextWrite(o, profile.Status, now)
	next.wake = wait
	switch {
	case write && o.current == nil:
		next.action = create
	case write:
		next.action = updateStatus
	}
	return next
}

// nextWrite reports whether to write the status now, and the delay until time alone requires a
// write; zero if only an event can. A new profile waits for the first report. A changed condition
// does not wait. Any other change, such as properties, waits until minInterval after the last
// write.
func nextWrite(o observed, desired inventory.ClusterProfileStatus, now time.Time) (bool, time.Duration) {
	held := o.held(now)
	var wait time.Duration
	switch {
	case o.current == nil && o.record.healthy.Status == metav1.ConditionTrue && o.version() != "":
		return true, 0
	case o.current == nil:
		// The clock of the API server dates the membership object's age.
		wait = min(reportGrace-now.Sub(o.record.object.GetCreationTimestamp().Time), reportGrace)
	case equality.Semantic.DeepEqual(o.current.Status, desired):
		return false, held
	case conditionsDiffer(o.current.Status.Conditions, desired.Conditions):
		return true, held
	default:
		wait = o.statusWritten.Add(minInterval).Sub(now)
	}
	if wait <= 0 {
		return true, held
	}
	if held > 0 {
		wait = min(wait, held)
	}
	return false, wait
}

func conditionsDiffer(current, desired []metav1.Condition) bool {
	return slices.ContainsFunc(desired, func(condition metav1.Condition) bool {
		old := meta.FindStatusCondition(current, condition.Type)
		return old == nil || old.Status != condition.Status || old.Reason != condition.Reason
	})
}

// held returns the remaining time before the condition of a control plane may show a change between
// healthy and unhealthy. Missing heartbeats show at once.
func (o observed) held(now time.Time) time.Duration {
	if o.current == nil {
		return 0
	}
	old := meta.FindStatusCondition(o.current.Status.Conditions, inventory.ConditionControlPlaneHealthy)
	if old == nil || old.Status == metav1.ConditionUnknown || o.record.healthy.Status == metav1.ConditionUnknown ||
		old.Status == o.record.healthy.Status {
		return 0
	}
	return max(old.LastTransitionTime.Add(minInterval).Sub(now), 0)
}
