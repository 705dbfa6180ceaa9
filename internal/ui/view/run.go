package view

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
)

// States of staged update runs and of their approval requests without a reason of their own.
const (
	StateAwaitsApproval = "AwaitsApproval"
	StatePending        = "Pending"
	StateApproved       = "Approved"
)

// Run is a staged update run of either kind.
type Run struct {
	client.Object
	Kind   string
	Spec   *placement.UpdateRunSpec
	Status *placement.UpdateRunStatus
}

// RunOf returns an object as a run, if it is one.
func RunOf(o client.Object) (Run, bool) {
	switch o := o.(type) {
	case *placement.ClusterStagedUpdateRun:
		return Run{o, "ClusterStagedUpdateRun", &o.Spec, &o.Status}, true
	case *placement.StagedUpdateRun:
		return Run{o, "StagedUpdateRun", &o.Spec, &o.Status}, true
	}
	return Run{}, false
}

// Ended reports whether a run has succeeded or failed, or could not be initialized for good.
func (r Run) Ended() bool { return updaterun.Ended(*r.Status) }

// Awaited returns the stage of a run that waits for approval, and the name of its approval request;
// empty if there is none.
func (r Run) Awaited() (stage, request string) {
	if r.Ended() || r.Spec.State == placement.StateStop || r.GetDeletionTimestamp() != nil {
		return "", ""
	}
	for _, s := range r.Status.StagesStatus {
		for _, tasks := range [][]placement.StageTaskStatus{s.BeforeStageTaskStatus, s.AfterStageTaskStatus} {
			for _, task := range tasks {
				if task.ApprovalRequestName != "" && !meta.IsStatusConditionTrue(task.Conditions, placement.ConditionApprovalApproved) {
					return s.StageName, task.ApprovalRequestName
				}
			}
		}
	}
	return "", ""
}

// Stage is the progress of a stage of a run.
type Stage struct {
	Name string
	// Updated counts the updated members of the stage, All counts all of them.
	Updated, All int
	// State is the reason of the stage without its prefix; StateNew if the stage has not begun.
	State, Message string
	// Request is the approval request of the waiting stage; empty if there is none.
	Request string
}

// Stages returns the stages of a run in their order. The last one is the removal of the placement
// from members, if there are such members.
func (r Run) Stages() (shown []Stage) {
	stages := r.Status.StagesStatus
	if last := r.Status.DeletionStageStatus; last != nil && len(last.Clusters) > 0 {
		stages = append(stages[:len(stages):len(stages)], *last)
	}
	awaited, request := r.Awaited()
	for _, s := range stages {
		one := Stage{Name: s.StageName, All: len(s.Clusters), State: StateNew}
		for _, c := range s.Clusters {
			if meta.IsStatusConditionTrue(c.Conditions, placement.ConditionSucceeded) {
				one.Updated++
			}
		}
		for _, kind := range []string{placement.ConditionProgressing, placement.ConditionSucceeded} {
			if c := meta.FindStatusCondition(s.Conditions, kind); c != nil && c.Status != metav1.ConditionUnknown {
				one.State, one.Message = strings.TrimPrefix(c.Reason, "StageUpdating"), c.Message
			}
		}
		if s.StageName == awaited {
			one.State, one.Request = StateAwaitsApproval, request
		}
		shown = append(shown, one)
	}
	return shown
}

// state returns the state of a run in one word.
func (r Run) state() string {
	conditions := r.Status.Conditions
	initialized := meta.FindStatusCondition(conditions, placement.ConditionInitialized)
	progressing := meta.FindStatusCondition(conditions, placement.ConditionProgressing)
	_, request := r.Awaited()
	switch {
	case r.GetDeletionTimestamp() != nil:
		return StateDeleting
	case meta.IsStatusConditionTrue(conditions, placement.ConditionSucceeded):
		return "Succeeded"
	case meta.IsStatusConditionFalse(conditions, placement.ConditionSucceeded):
		return "Failed"
	case initialized == nil:
		return StateNew
	case initialized.Status != metav1.ConditionTrue:
		return "NotInitialized"
	case request != "":
		return StateAwaitsApproval
	case progressing == nil:
		return placement.ConditionInitialized
	}
	return strings.TrimPrefix(progressing.Reason, "UpdateRun")
}

func runRow(r Run, now time.Time) []string {
	updated, total, current := 0, 0, ""
	for _, s := range r.Stages() {
		updated, total = updated+s.Updated, total+s.All
		if current == "" && s.State != "Succeeded" && s.State != "SkippedNoClusters" {
			current = s.Name
		}
	}
	if current == placement.DeletionStage {
		current = "removal"
	}
	state := r.state()
	well := state == "Succeeded" || state == placement.ConditionProgressing || state == placement.ConditionInitialized
	return []string{NameOf(r.Object), r.Kind, state, Or(r.Spec.PlacementName), Or(current), fmt.Sprintf("%d/%d", updated, total),
		Since(r.GetCreationTimestamp().Time, now), Why(well, r.Status.Message)}
}

func approvalRow(a updaterun.ApprovalRequest, now time.Time) []string {
	state := StatePending
	switch {
	case a.GetDeletionTimestamp() != nil:
		state = StateDeleting
	case a.Approved():
		state = StateApproved
	}
	return []string{NameOf(a.Object), a.Kind, state, Or(a.Spec.TargetUpdateRun), Or(a.Spec.TargetStage),
		Since(a.GetCreationTimestamp().Time, now)}
}

// titleOfRun returns kind and name of a run or an approval request; empty for other objects.
func titleOfRun(o client.Object) string {
	if r, is := RunOf(o); is {
		return r.Kind + " " + NameOf(o)
	}
	if a, is := updaterun.ApprovalRequestOf(o); is {
		return a.Kind + " " + NameOf(o)
	}
	return ""
}
