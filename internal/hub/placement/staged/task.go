package staged

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// RequestName returns the name of the approval request before or after a stage of a run.
func RequestName(run, task, stage string) string { return fmt.Sprintf("%s-%s-%s", run, task, stage) }

// Requests returns the names of the possible approval requests for the tasks of a run.
func Requests(run string, status placement.UpdateRunStatus) (names []string) {
	for _, s := range status.StagesStatus {
		for _, task := range s.BeforeStageTaskStatus {
			if task.Type == placement.TaskApproval {
				names = append(names, RequestName(run, "before", s.StageName))
			}
		}
		for _, task := range s.AfterStageTaskStatus {
			if task.Type == placement.TaskApproval {
				names = append(names, RequestName(run, "after", s.StageName))
			}
		}
	}
	return names
}

// approval requests an approval, and reports whether it was given. An accepted approval stays
// valid.
func (e *execution) approval(s *placement.StageUpdatingStatus, task *placement.StageTaskStatus, when string) bool {
	if isTrue(task.Conditions, placement.ConditionApprovalApproved) {
		return true
	}
	name := RequestName(e.Name, when, s.StageName)
	task.ApprovalRequestName = name
	request, found := e.Requests[name]
	switch {
	case !found:
		e.Create = append(e.Create, Approval{Name: name, Stage: s.StageName, Task: when + "Stage"})
		return false
	case !request.Owned:
		return false
	}
	e.set(&task.Conditions, placement.ConditionApprovalCreated, metav1.ConditionTrue, placement.ReasonTaskCreated, "")
	if !request.Approved {
		return false
	}
	if !request.Accepted {
		e.Accept = append(e.Accept, name)
	}
	e.set(&task.Conditions, placement.ConditionApprovalApproved, metav1.ConditionTrue, placement.ReasonTaskApproved, "")
	return true
}

// afterTasks continues the tasks after a stage; doneAt is the time of its last update. It returns
// the task that the stage waits for; empty if all tasks have ended.
func (e *execution) afterTasks(s *placement.StageUpdatingStatus, config placement.StageConfig, doneAt time.Time) (waitsFor string) {
	for i := range s.AfterStageTaskStatus {
		task := &s.AfterStageTaskStatus[i]
		if task.Type == placement.TaskApproval {
			if !e.approval(s, task, "after") {
				waitsFor = task.ApprovalRequestName
			}
			continue
		}
		due := doneAt.Add(config.AfterStageTasks[i].WaitTime.Duration)
		switch {
		case isTrue(task.Conditions, placement.ConditionWaitTimeElapsed):
		case e.now.Before(due):
			e.At = kube.Earlier(e.At, due)
			if waitsFor == "" {
				waitsFor = "until " + due.UTC().Format(time.RFC3339)
			}
		default:
			e.set(&task.Conditions, placement.ConditionWaitTimeElapsed, metav1.ConditionTrue, placement.ReasonTaskWaited, "")
		}
	}
	return waitsFor
}

// wait reports the wait of a stage for a task: a time, or an approval request.
func (e *execution) wait(s *placement.StageUpdatingStatus, when, waitsFor string) {
	message := fmt.Sprintf("waits for the tasks %s stage %s: %s", when, s.StageName, waitsFor)
	if request, found := e.Requests[waitsFor]; found && !request.Owned {
		message = fmt.Sprintf("stage %s: the approval request %s is not of this run and has no effect: delete it, and the hub creates another",
			s.StageName, waitsFor)
	} else if request.Outdated {
		message = fmt.Sprintf("stage %s: approval request %s was approved without its metadata.generation as observedGeneration, which has no "+
			"effect", s.StageName, waitsFor)
	} else if waitsFor == RequestName(e.Name, when, s.StageName) {
		message = fmt.Sprintf("waits for the approval %s stage %s: approval request %s", when, s.StageName, waitsFor)
	}
	e.set(&s.Conditions, placement.ConditionProgressing, metav1.ConditionFalse, placement.ReasonStageWaiting, message)
	e.progress(metav1.ConditionFalse, placement.ReasonRunWaiting, message)
}

// deletionStage removes the placement from members no longer picked, and reports whether it has
// ended.
func (e *execution) deletionStage() bool {
	s := e.Status.DeletionStageStatus
	if s == nil || isTrue(s.Conditions, placement.ConditionSucceeded) {
		return true
	}
	if e.Spec.State == placement.StateStop && s.StartTime == nil {
		return e.stopped(s)
	}
	if len(s.Clusters) > 0 && s.StartTime == nil {
		s.StartTime = &metav1.Time{Time: e.now}
	}
	var u updating
	for i := range s.Clusters {
		c := &s.Clusters[i]
		e.set(&c.Conditions, placement.ConditionStarted, metav1.ConditionTrue, placement.ReasonClusterStarted, "")
		m := e.Members[c.ClusterName]
		if isTrue(c.Conditions, placement.ConditionSucceeded) || e.Problem == "" && (!m.Holds || m.Picked) { // a member picked again keeps it
			e.set(&c.Conditions, placement.ConditionSucceeded, metav1.ConditionTrue, placement.ReasonClusterDone, "")
			continue
		}
		u.updating = append(u.updating, c.ClusterName)
		m.Current, m.ReadyAt = false, time.Time{}
		e.look(c.ClusterName, m, s.StartTime.Time, &u)
	}
	if len(u.updating) > 0 {
		e.set(&s.Conditions, placement.ConditionProgressing, metav1.ConditionTrue, placement.ReasonStageStarted,
			"the placement is being removed from members")
		e.reportUpdating(s, u)
		return false
	}
	e.endStage(s, placement.ReasonStageSucceeded, "no member has the placement that is not picked")
	return true
}
