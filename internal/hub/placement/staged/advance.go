package staged

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
	"github.com/muster-fleet/muster/internal/kube"
)

// Decide is pure: it has neither client nor clock.
func Decide(r Run, now time.Time) Decision {
	w := writer{now, r.Generation}
	r.Before = *r.Before.DeepCopy()
	meta.RemoveStatusCondition(&r.Before.Conditions, placement.ConditionSupported) // set by a hub without support for runs
	d := Decision{Status: r.Before}
	if updaterun.Ended(r.Before) {
		return d
	}
	if !Initialized(r.Before) {
		status, err := r.initialize(w)
		d.Status = status
		if err != nil {
			d.Status.Conditions = r.Before.Conditions
			hint := ""
			if !errors.As(err, new(waits)) {
				hint = "; create another run after the correction"
			}
			d.Status.Message = kube.Clip(err.Error(), kube.MaxMessage-len(hint)) + hint
			w.set(&d.Status.Conditions, placement.ConditionInitialized, metav1.ConditionFalse, placement.ReasonRunInitFailed, d.Status.Message)
			return d
		}
		r.Before = d.Status
	}
	e := execution{Run: r, writer: w, Decision: d}
	e.advance()
	return e.Decision
}

// execution is the progress of a run in this decision.
type execution struct {
	Run
	writer
	Decision
}

// advance continues an initialized run as far as possible.
func (e *execution) advance() {
	begun := e.Before.Begun != nil
	switch {
	case e.Missing, !e.External && begun:
		e.fail(fmt.Sprintf("there is no %s with spec.strategy.type External any more", e.Placement))
		return
	case e.Before.PlacementUID != e.UID:
		e.fail(fmt.Sprintf("the run was initialized for another %s, or by another hub; create another run", e.Placement))
		return
	case e.Later != "":
		e.fail(fmt.Sprintf("run %s has begun after this one; create another run to continue", e.Later))
		return
	case !e.External:
		e.progress(metav1.ConditionFalse, placement.ReasonRunWaiting,
			fmt.Sprintf("the hub rolls %s out itself: set its spec.strategy.type to External", e.Placement))
		return
	case !begun && e.Spec.State != placement.StateRun:
		e.Status.Message = "initialized; set spec.state to Run to begin"
		return
	case !begun && e.Other != "":
		e.progress(metav1.ConditionFalse, placement.ReasonRunWaiting,
			fmt.Sprintf("run %s of %s is in progress: wait until it ends, or stop it", e.Other, e.Placement))
		return
	case !begun:
		e.Status.Begun = &metav1.MicroTime{Time: e.now}
	}
	for i := range e.Status.StagesStatus {
		s, config := &e.Status.StagesStatus[i], e.Status.StagedUpdateStrategySnapshot.Stages[i]
		if !isTrue(s.Conditions, placement.ConditionSucceeded) && !e.stage(s, config) {
			return
		}
	}
	if !e.deletionStage() {
		return
	}
	e.progress(metav1.ConditionFalse, placement.ReasonRunSucceeded, "all stages have ended")
	e.set(&e.Status.Conditions, placement.ConditionSucceeded, metav1.ConditionTrue, placement.ReasonRunSucceeded, "all stages have ended")
	e.Status.Message = ""
}

// stage continues a stage, and reports whether it has ended.
func (e *execution) stage(s *placement.StageUpdatingStatus, config placement.StageConfig) bool {
	if len(s.Clusters) == 0 {
		e.endStage(s, placement.ReasonStageSkipped, "the stage has no members")
		return true
	}
	if s.StartTime == nil {
		if e.Spec.State == placement.StateStop {
			return e.stopped(s)
		}
		for i := range s.BeforeStageTaskStatus {
			if !e.approval(s, &s.BeforeStageTaskStatus[i], "before") {
				e.wait(s, "before", s.BeforeStageTaskStatus[i].ApprovalRequestName)
				return false
			}
		}
		s.StartTime = &metav1.Time{Time: e.now}
	}
	u := e.update(s)
	if u.failed != "" {
		e.set(&s.Conditions, placement.ConditionProgressing, metav1.ConditionFalse, placement.ReasonStageFailed, u.failed)
		e.set(&s.Conditions, placement.ConditionSucceeded, metav1.ConditionFalse, placement.ReasonStageFailed, u.failed)
		e.fail(fmt.Sprintf("stage %s: %s", s.StageName, u.failed))
		return false
	}
	if e.Spec.State == placement.StateStop {
		if len(u.updating) > 0 {
			message := "no further member is updated; waiting for " + someOf(u.updating)
			e.set(&s.Conditions, placement.ConditionProgressing, metav1.ConditionUnknown, placement.ReasonStageStopping, message)
			e.progress(metav1.ConditionUnknown, placement.ReasonRunStopping, message)
			return false
		}
		return e.stopped(s)
	}
	e.start(s, config, &u)
	if u.left > 0 {
		e.set(&s.Conditions, placement.ConditionProgressing, metav1.ConditionTrue, placement.ReasonStageStarted,
			"members are being updated")
		e.reportUpdating(s, u)
		return false
	}
	if waitsFor := e.afterTasks(s, config, u.doneAt); waitsFor != "" {
		e.wait(s, "after", waitsFor)
		return false
	}
	e.endStage(s, placement.ReasonStageSucceeded, "all members are updated, and all tasks have ended")
	return true
}

// updating is the state of the members of a stage.
type updating struct {
	// failed is the reason why the stage cannot continue.
	failed string
	// updating holds the members being updated. troubles holds their known problems.
	updating, troubles []string
	// left is the number of members without the update. doneAt is the time of the last finished
	// update.
	left   int
	doneAt time.Time
}

// update observes the members being updated.
func (e *execution) update(s *placement.StageUpdatingStatus) (u updating) {
	var unpicked []string
	for i := range s.Clusters {
		c := &s.Clusters[i]
		done := meta.FindStatusCondition(c.Conditions, placement.ConditionSucceeded)
		if done != nil && done.Status == metav1.ConditionTrue {
			u.doneAt = later(u.doneAt, done.LastTransitionTime.Time)
			continue
		}
		m := e.Members[c.ClusterName]
		u.left++
		if !m.Picked && e.Problem == "" {
			why := fmt.Sprintf("%s does not pick %s any more", e.Placement, c.ClusterName)
			e.set(&c.Conditions, placement.ConditionSucceeded, metav1.ConditionFalse, placement.ReasonClusterFailed, why)
			unpicked = append(unpicked, c.ClusterName)
			continue
		}
		started := meta.FindStatusCondition(c.Conditions, placement.ConditionStarted)
		switch {
		case started == nil:
		case m.Current && m.Ready && e.Problem == "":
			// A condition's time is stored without fractions of a second; no wait may end early.
			done := writer{ceil(e.now), e.generation}
			done.set(&c.Conditions, placement.ConditionSucceeded, metav1.ConditionTrue, placement.ReasonClusterDone, "")
			u.doneAt, u.left = later(u.doneAt, done.now), u.left-1
		default:
			u.updating = append(u.updating, c.ClusterName)
			e.look(c.ClusterName, m, started.LastTransitionTime.Time, &u)
		}
	}
	if len(unpicked) > 0 {
		u.failed = fmt.Sprintf("%s does not pick %s any more", e.Placement, someOf(unpicked))
	}
	return u
}

// look notes the trouble of a member being updated, and the time of the next check.
func (e *execution) look(name string, m Member, started time.Time, u *updating) {
	trouble := m.Trouble
	late := started.Add(patience)
	switch {
	case trouble == "" && !e.now.Before(late):
		trouble = "not updated after " + patience.String()
	case trouble == "":
		e.At = kube.Earlier(e.At, late)
	}
	if trouble != "" {
		u.troubles = append(u.troubles, name+": "+trouble)
	}
	if m.Current && !m.ReadyAt.IsZero() {
		e.At = kube.Earlier(e.At, m.ReadyAt)
	}
}

// start begins the update of further members, within the limit of concurrent updates.
func (e *execution) start(s *placement.StageUpdatingStatus, config placement.StageConfig, u *updating) {
	most, err := concurrency(config.MaxConcurrency, len(s.Clusters))
	if err != nil {
		most = 1 // it was checked when the run was initialized
	}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		if len(u.updating) >= most || e.Problem != "" {
			return
		}
		if meta.FindStatusCondition(c.Conditions, placement.ConditionStarted) == nil {
			e.set(&c.Conditions, placement.ConditionStarted, metav1.ConditionTrue, placement.ReasonClusterStarted, "")
			u.updating = append(u.updating, c.ClusterName)
			e.At = kube.Earlier(e.At, e.now.Add(patience))
		}
	}
}

// reportUpdating reports the members being updated, or the reason why they are stuck.
func (e *execution) reportUpdating(s *placement.StageUpdatingStatus, u updating) {
	if e.Problem != "" {
		e.progress(metav1.ConditionFalse, placement.ReasonRunStuck,
			fmt.Sprintf("stage %s: nothing of %s can be rolled out: %s", s.StageName, e.Placement, e.Problem))
		return
	}
	if len(u.troubles) == 0 {
		message := fmt.Sprintf("stage %s: updating %s", s.StageName, someOf(u.updating))
		e.progress(metav1.ConditionTrue, placement.ReasonRunProgressing, message)
		return
	}
	e.progress(metav1.ConditionFalse, placement.ReasonRunStuck, fmt.Sprintf("stage %s waits for %d members that cannot be updated: %s",
		s.StageName, len(u.troubles), kube.JoinTexts(u.troubles[:min(maxNamed, len(u.troubles))], len(u.troubles))))
}

// stopped reports a stopped run in a stage.
func (e *execution) stopped(s *placement.StageUpdatingStatus) bool {
	const message = "stopped; set spec.state to Run to continue"
	e.set(&s.Conditions, placement.ConditionProgressing, metav1.ConditionFalse, placement.ReasonStageStopped, message)
	e.progress(metav1.ConditionFalse, placement.ReasonRunStopped, fmt.Sprintf("stage %s: %s", s.StageName, message))
	return false
}

// endStage reports the end of a stage.
func (e *execution) endStage(s *placement.StageUpdatingStatus, reason, message string) {
	if s.StartTime == nil {
		s.StartTime = &metav1.Time{Time: e.now}
	}
	s.EndTime = &metav1.Time{Time: e.now}
	e.set(&s.Conditions, placement.ConditionProgressing, metav1.ConditionFalse, reason, message)
	e.set(&s.Conditions, placement.ConditionSucceeded, metav1.ConditionTrue, reason, message)
}

// progress sets the condition Progressing of the run.
func (e *execution) progress(status metav1.ConditionStatus, reason, message string) {
	message = kube.Clip(message, kube.MaxMessage)
	e.Status.Message = message
	e.set(&e.Status.Conditions, placement.ConditionProgressing, status, reason, message)
}

// fail ends the run.
func (e *execution) fail(message string) {
	e.progress(metav1.ConditionFalse, placement.ReasonRunFailed, message)
	e.set(&e.Status.Conditions, placement.ConditionSucceeded, metav1.ConditionFalse, placement.ReasonRunFailed, e.Status.Message)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ceil returns the next whole second.
func ceil(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); !whole.Equal(t) {
		return whole.Add(time.Second)
	}
	return t
}
