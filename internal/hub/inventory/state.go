package inventory

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	inventory "github.com/muster-fleet/muster/api/inventory/v1alpha1"
)

// manager is the cluster manager that the hub is.
const manager = "muster"

// pace is what KEP-4322 allows: less than one write per 30 s and object on average. What nobody has to know at once waits for it, and
// a control plane is not called well and ill in turns any faster.
const pace = 30 * time.Second

// settle is how long a profile waits for an agent that is just joining: then it is written once, with all that is known.
const settle = 5 * time.Second

// step is what the profile of a record needs next.
//
//	           record made          record or its labels change
//	(none) ────────────────► create ──────────────────────────► amend
//	   ▲                       │ ▲                                │
//	   │        record gone    ▼ │ deleted by hand                ▼
//	   └─────── remove ◄──────── show ◄───────────────────────────┘
//
// A profile of another manager stops at refuse.
type step string

const (
	rest   step = "Rest"
	refuse step = "Refuse"
	create step = "Create"
	amend  step = "Amend"
	show   step = "Show"
	remove step = "Remove"
)

// observed is all that a profile depends on.
type observed struct {
	// key of the record.
	key types.NamespacedName
	// record is nil if there is none, or if it is none of the hub's business.
	record *record
	report *clusterv1beta1.InternalMemberCluster // nil if there is none
	// namespace of the profiles; empty if the inventory is off.
	namespace string
	have      *inventory.ClusterProfile // nil if there is none in that namespace
	// strays are the hub's own profiles of that name in other namespaces, from settings before.
	strays []*inventory.ClusterProfile
	// shown is when the status was last written; zero if not since the hub started.
	shown time.Time
}

// decision is the next step and all that it takes.
type decision struct {
	step step
	// profile as it should be.
	profile *inventory.ClusterProfile
	// skipped are the properties of the member that a profile cannot hold.
	skipped []string
	// wake is when to look again; zero if only an event can change anything.
	wake time.Duration
}

// ours says whether a profile is the hub's. Its spec cannot be changed, so its label decides nothing.
func ours(profile *inventory.ClusterProfile) bool {
	return profile.Spec.ClusterManager.Name == manager
}

// decide is total and looks at nothing but its arguments.
func decide(o observed, now time.Time) decision {
	switch {
	case o.have != nil && !ours(o.have):
		if o.record == nil {
			return decision{step: rest}
		}
		return decision{step: refuse}
	case o.record == nil && o.have == nil, o.namespace == "":
		return decision{step: rest}
	case o.record == nil:
		return decision{step: remove}
	case !o.record.settled:
		return decision{step: rest}
	}
	profile, skipped := describe(o, now)
	next := decision{step: rest, profile: profile, skipped: skipped}
	switch {
	case o.have == nil:
		if next.wake = o.settling(now); next.wake == 0 {
			next.step = create
		}
	case !equality.Semantic.DeepEqual(profile.ObjectMeta, o.have.ObjectMeta) || profile.Spec != o.have.Spec:
		next.step = amend
	default:
		next.step, next.wake = pacing(o, profile, now)
		if held := o.holding(now); held > 0 && (next.wake == 0 || held < next.wake) {
			next.wake = held
		}
	}
	return next
}

// settling is how long a profile that is not there yet should still wait for the agent's first report.
func (o observed) settling(now time.Time) time.Duration {
	if o.record.healthy.Status == metav1.ConditionTrue && o.version() != "" {
		return 0
	}
	// The record's age is by another clock, the API server's.
	return min(max(settle-now.Sub(o.record.object.GetCreationTimestamp().Time), 0), settle)
}

// pacing says whether the status is to be written, now or when.
func pacing(o observed, profile *inventory.ClusterProfile, now time.Time) (step, time.Duration) {
	if equality.Semantic.DeepEqual(o.have.Status, profile.Status) {
		return rest, 0
	}
	for _, condition := range profile.Status.Conditions {
		old := meta.FindStatusCondition(o.have.Status.Conditions, condition.Type)
		if old == nil || old.Status != condition.Status || old.Reason != condition.Reason {
			return show, 0
		}
	}
	if due := o.shown.Add(pace).Sub(now); due > 0 {
		return rest, due
	}
	return show, 0
}

// holding is how long the condition of a control plane that is called well or ill stands against the opposite. Silence is told at once.
func (o observed) holding(now time.Time) time.Duration {
	if o.have == nil {
		return 0
	}
	old := meta.FindStatusCondition(o.have.Status.Conditions, inventory.ConditionControlPlaneHealthy)
	if old == nil || old.Status == metav1.ConditionUnknown || o.record.healthy.Status == metav1.ConditionUnknown || old.Status == o.record.healthy.Status {
		return 0
	}
	return max(old.LastTransitionTime.Add(pace).Sub(now), 0)
}
