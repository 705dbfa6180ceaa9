// Package staged decides how a staged update run goes on: which members are in which stage, which
// of them are updated now, and what the run waits for.
//
// It writes nothing. Its invariants: the functions are pure; a member is updated only if every
// stage before its own has ended; a run that has ended does not go on.
package staged

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// MaxMembers is how many members a run is for at most: its status lists all of them, with some 400
// bytes for each, and etcd stores objects of 1.5 MiB.
const MaxMembers = 1000

// patience is how long a member may take before the run counts as stuck, if nothing is known to be
// wrong with it.
const patience = 5 * time.Minute

// Member is how one member stands to the version that a run rolls out.
type Member struct {
	Labels map[string]string
	// Picked: the placement picks the member. Holds: the member has Works of the placement.
	Picked, Holds bool
	// Current: the Works of the member are just those of the version. Ready: what they brought
	// works.
	Current, Ready bool
	// ReadyAt is when the member will be ready by time alone; zero if never.
	ReadyAt time.Time
	// Trouble is what keeps the member from having the version, or the version from working there;
	// empty if nothing is known.
	Trouble string
}

// Request is an approval request as it is on the hub.
type Request struct {
	// Owned: the run made it, for the stage that it names.
	Owned bool
	// Approved: the condition Approved is True for the current generation. Outdated: it is True, and
	// for none or another one. Accepted: the hub has said that it counts.
	Approved, Outdated, Accepted bool
}

// Approval is an approval request that a run needs.
type Approval struct{ Name, Stage, Task string }

// Run is all that is decided on.
type Run struct {
	Name       string
	Generation int64
	Spec       placement.UpdateRunSpec
	// Before is the status of the run. It is not changed.
	Before placement.UpdateRunStatus
	// Placement is what people call the placement, ClusterResourcePlacement web, UID its UID.
	// Missing: there is none.
	Placement string
	UID       string
	Missing   bool
	// External: the type of the placement's strategy is External.
	External bool
	// Problem is why nothing of the placement can be rolled out at the moment; empty if it can.
	Problem string
	// Versions are the versions that are kept, the latest last. Latest is empty while it is yet to
	// be recorded.
	Versions []string
	Latest   string
	// StrategyKind is the kind of the strategy, Strategy nil if there is none.
	StrategyKind  string
	Strategy      *placement.UpdateStrategySpec
	ApplyStrategy *placement.ApplyStrategy
	// Members by their names; those that lose the placement included.
	Members map[string]Member
	// Requests by their names.
	Requests map[string]Request
	// Other is the run of the placement that is in progress, Later one that has begun after this.
	Other, Later string
}

// Decision is what is to be done.
type Decision struct {
	Status placement.UpdateRunStatus
	// Create are the approval requests that are missing, Accept the names of those whose approval
	// is accepted now.
	Create []Approval
	Accept []string
	// At is when time alone makes a difference; zero if never.
	At time.Time
}

// Turn says what may be written to a member.
type Turn int

const (
	// Keep leaves the member what it has.
	Keep Turn = iota
	// Update gives the member the version of the run.
	Update
	// Repair writes again what the member has of the version, if it is gone.
	Repair
	// Remove takes the placement off the member.
	Remove
)

// Turns returns whose turn it is by the status of the run that has begun last.
func Turns(status placement.UpdateRunStatus) map[string]Turn {
	turns := map[string]Turn{}
	for _, stage := range status.StagesStatus {
		for _, c := range stage.Clusters {
			switch {
			case isTrue(c.Conditions, placement.ConditionSucceeded):
				turns[c.ClusterName] = Repair
			case isTrue(c.Conditions, placement.ConditionStarted):
				turns[c.ClusterName] = Update
			}
		}
	}
	if stage := status.DeletionStageStatus; stage != nil {
		for _, c := range stage.Clusters {
			if isTrue(c.Conditions, placement.ConditionStarted) && !isTrue(c.Conditions, placement.ConditionSucceeded) {
				turns[c.ClusterName] = Remove
			}
		}
	}
	return turns
}

// Clusters names the members of a run.
func Clusters(status placement.UpdateRunStatus) map[string]bool {
	names := map[string]bool{}
	for _, stage := range status.StagesStatus {
		for _, c := range stage.Clusters {
			names[c.ClusterName] = true
		}
	}
	return names
}

// Initialized says whether the members of a run are divided into stages.
func Initialized(status placement.UpdateRunStatus) bool {
	return isTrue(status.Conditions, placement.ConditionInitialized)
}

// Stopped says whether a run has begun, was stopped, and updates no member any more.
func Stopped(spec placement.UpdateRunSpec, status placement.UpdateRunStatus) bool {
	c := meta.FindStatusCondition(status.Conditions, placement.ConditionProgressing)
	return spec.State == placement.StateStop && c != nil && c.Reason == placement.ReasonRunStopped
}

func isTrue(conditions []metav1.Condition, kind string) bool {
	return meta.IsStatusConditionTrue(conditions, kind)
}

// writer sets conditions at one time and for one generation of a run.
type writer struct {
	now        time.Time
	generation int64
}

func (w writer) set(conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message,
		ObservedGeneration: w.generation, LastTransitionTime: metav1.NewTime(w.now),
	})
}
