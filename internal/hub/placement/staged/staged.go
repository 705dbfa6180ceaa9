// Package staged decides the next step of a staged update run. It determines the members of each
// stage, the members to update now, and the tasks to wait for.
//
// It writes nothing. Its invariants: the functions are pure; a member is updated only after every
// earlier stage has ended; an ended run does not continue.
package staged

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// MaxMembers limits the members of a run. Its status lists all of them, with some 400 bytes for
// each, and etcd stores objects of 1.5 MiB.
const MaxMembers = 1000

// patience is the time until an update without a known problem counts as stuck.
const patience = 5 * time.Minute

// Member is the state of one member relative to the version of a run.
type Member struct {
	Labels map[string]string
	// Picked: the placement picks the member. Holds: the member has Works of the placement.
	Picked, Holds bool
	// Current: the Works of the member match the version exactly. Ready: their objects work.
	Current, Ready bool
	// ReadyAt is the time when the member becomes ready by time alone; zero if never.
	ReadyAt time.Time
	// Trouble is the problem of the version on the member; empty if none is known.
	Trouble string
}

// Request is an approval request on the hub.
type Request struct {
	// Owned: the run created it, for the stage in its name.
	Owned bool
	// Approved: the condition Approved is True for the current generation. Outdated: it is True,
	// but for none or another one. Accepted: the hub has accepted the approval.
	Approved, Outdated, Accepted bool
}

// Approval is an approval request needed by a run.
type Approval struct{ Name, Stage, Task string }

// Run is the input of a decision.
type Run struct {
	Name       string
	Generation int64
	Spec       placement.UpdateRunSpec
	// Before is the status of the run. It is not changed.
	Before placement.UpdateRunStatus
	// Placement is the display name of the placement, for example ClusterResourcePlacement web.
	// UID is its UID. Missing: it does not exist.
	Placement string
	UID       string
	Missing   bool
	// External: the type of the placement's strategy is External.
	External bool
	// Problem is the reason why the placement cannot be rolled out at the moment; empty if it
	// can.
	Problem string
	// Versions are the stored versions, the latest last. Latest is empty until it is stored.
	Versions []string
	Latest   string
	// StrategyKind is the kind of the strategy. Strategy is nil if it does not exist.
	StrategyKind  string
	Strategy      *placement.UpdateStrategySpec
	ApplyStrategy *placement.ApplyStrategy
	// Members by name, including members to remove the placement from.
	Members map[string]Member
	// Requests by their names.
	Requests map[string]Request
	// Other is the run of the placement in progress. Later is a run started after this one.
	Other, Later string
}

// Decision is the next step of a run.
type Decision struct {
	Status placement.UpdateRunStatus
	// Create holds the missing approval requests. Accept holds the names of requests with an approval
	// to accept now.
	Create []Approval
	Accept []string
	// At is the time of the next change without an event; zero if never.
	At time.Time
}

// Turn is the kind of write allowed to a member.
type Turn int

const (
	// Keep leaves the member unchanged.
	Keep Turn = iota
	// Update gives the member the version of the run.
	Update
	// Repair restores missing parts of the version on the member.
	Repair
	// Remove removes the placement from the member.
	Remove
)

// Turns returns the turn of each member by the status of the last started run.
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

// Clusters returns the names of the members of a run.
func Clusters(status placement.UpdateRunStatus) map[string]bool {
	names := map[string]bool{}
	for _, stage := range status.StagesStatus {
		for _, c := range stage.Clusters {
			names[c.ClusterName] = true
		}
	}
	return names
}

// Initialized reports whether the members of a run are divided into stages.
func Initialized(status placement.UpdateRunStatus) bool {
	return isTrue(status.Conditions, placement.ConditionInitialized)
}

// Stopped reports whether a run has begun, was stopped, and updates no member any more.
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
