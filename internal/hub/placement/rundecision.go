package placement

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/updaterun"
	"github.com/muster-fleet/muster/internal/hub/placement/staged"
	"github.com/muster-fleet/muster/internal/kube"
)

// stage decides on the runs of a placement, and plans the writes to members by them.
func (d *decision) stage(o observed, targets []target) {
	d.runs = o.decideRuns(*d, targets)
	for _, r := range d.runs {
		d.recheckAt = kube.Earlier(d.recheckAt, r.At)
	}
	if o.staging == nil || d.problem != (condition{}) {
		return
	}
	d.recheckAt = kube.Earlier(d.recheckAt, o.nextVersionReview())
	switch v, recorded := o.newest(); {
	case recorded || o.staging.tooLarge != "":
	case o.now.Before(o.staging.recordAt):
		d.recheckAt = kube.Earlier(d.recheckAt, o.staging.recordAt)
	default:
		d.record = &v
	}
	turns := map[string]staged.Turn{}
	// A run beginning now, or with another version than observed, is handled at the next reconcile.
	if run := latest(o.runs); run != nil && o.staging.target != nil && o.staging.targetProblem == "" && !d.begins() {
		turns = staged.Turns(*run.status)
		for _, r := range d.runs {
			if r.run.GetUID() == run.GetUID() {
				turns = staged.Turns(r.Status)
			}
		}
	}
	d.plan = planStages(targets, turns)
	d.recreate(o, targets, func(t target) bool {
		turn := turns[t.name]
		return t.wanted && (turn == staged.Update || turn == staged.Repair)
	})
}

// nextVersionReview returns the time of the next review of the author's rights to the version of
// a run in progress; zero if none is needed. No event reports such a change.
func (o observed) nextVersionReview() time.Time {
	run := latest(o.runs)
	if o.staging.target == nil || run == nil || !run.inProgress() || o.author == "" {
		return time.Time{}
	}
	wait := maxReview
	stuck := meta.FindStatusCondition(run.status.Conditions, placement.ConditionProgressing)
	if o.staging.targetProblem != "" && stuck != nil {
		wait = min(max(o.now.Sub(stuck.LastTransitionTime.Time), minReview), maxReview)
	}
	return o.now.Add(wait)
}

// begins reports whether a run begins now.
func (d decision) begins() bool {
	return slices.ContainsFunc(d.runs, func(r runDecision) bool { return r.run.status.Begun == nil && r.Status.Begun != nil })
}

// planStages plans the next changes of a placement rolled out by runs.
func planStages(targets []target, turns map[string]staged.Turn) rolloutPlan {
	p := rolloutPlan{held: true}
	for _, t := range slices.SortedFunc(slices.Values(targets), byName) {
		if t.wanted {
			p.wanted++
		}
		switch turn := turns[t.name]; {
		case !t.wanted && (!t.exists || t.deleting):
		case !t.wanted && turn == staged.Remove && !t.paused:
			p.remove = append(p.remove, t)
		case t.wanted && (t.blocked || t.exists && t.upToDate && !t.deleting):
		case t.wanted && !t.deleting && !t.paused && !(t.exists && t.unreachable) &&
			(turn == staged.Update || turn == staged.Repair && t.incomplete):
			p.write = append(p.write, t)
		default:
			p.waiting = append(p.waiting, t)
		}
	}
	return p
}

// decideRuns decides on each run. At most one begins at a time.
func (o observed) decideRuns(d decision, targets []target) (decisions []runDecision) {
	members, last := o.stagedMembers(d, targets), latest(o.runs)
	other := ""
	if last != nil && last.inProgress() {
		other = last.GetName()
	}
	for _, r := range o.runs {
		if updaterun.Ended(*r.status) { // nothing changes any more
			continue
		}
		problem := d.problem.message
		if problem == "" && o.staging != nil && r.begun() {
			problem = o.staging.targetProblem
		}
		facts := r.facts(o, problem, false)
		facts.Members, facts.Other = members, other
		if last != nil && r.begun() && r.GetUID() != last.GetUID() {
			facts.Later = last.GetName()
		}
		decided := staged.Decide(facts, o.now)
		if r.status.Begun == nil && decided.Status.Begun != nil {
			other = r.GetName()
		}
		decisions = append(decisions, runDecision{r.genericRun, decided})
	}
	return decisions
}

// facts returns the input for a decision on a run, without the members and the other runs.
func (r observedRun) facts(o observed, problem string, missing bool) staged.Run {
	facts := staged.Run{
		Name: r.GetName(), Generation: r.GetGeneration(), Spec: *r.spec, Before: *r.status,
		Placement: kube.Name(o.kind, o.key.Namespace, o.key.Name), UID: string(o.uid), Missing: missing,
		External: o.staging != nil, Problem: problem,
		StrategyKind: "ClusterStagedUpdateStrategy", Strategy: r.strategy, Requests: r.requests,
	}
	if o.key.Namespace != "" {
		facts.StrategyKind = "StagedUpdateStrategy"
	}
	if o.spec != nil {
		facts.ApplyStrategy = o.spec.Strategy.ApplyStrategy
	}
	if o.staging == nil {
		return facts
	}
	for _, v := range o.staging.versions {
		facts.Versions = append(facts.Versions, v.String())
	}
	if v, recorded := o.newest(); recorded {
		facts.Latest = v.String()
	} else if r.spec.ResourceSnapshotIndex != "" {
		facts.Latest = r.spec.ResourceSnapshotIndex
	} else if o.staging.tooLarge != "" && facts.Problem == "" {
		facts.Problem = o.staging.tooLarge
	}
	return facts
}

// stagedMembers returns the members in the form used by runs.
func (o observed) stagedMembers(d decision, targets []target) map[string]staged.Member {
	if len(o.runs) == 0 {
		return nil
	}
	byNamespace := map[string]int{}
	for i, decision := range d.result.Decisions {
		if decision.Member != nil {
			byNamespace[decision.Member.Namespace] = i
		}
	}
	members := map[string]staged.Member{}
	for _, t := range targets {
		decision, reported := d.result.Decisions[byNamespace[t.namespace]], o.reported[t.namespace]
		m := staged.Member{
			Labels: decision.Member.Labels, Picked: t.wanted, Holds: t.exists, Current: t.exists && t.upToDate && !t.deleting,
			Ready: reported.ready, ReadyAt: reported.readyAt,
		}
		switch {
		case t.unreachable:
			m.Trouble = decision.Member.Obstacle.Message
		case t.paused:
			m.Trouble = "the member is paused or quarantined; placed objects stay as they are"
		case t.blocked && d.overriddenCondition(t.namespace).message != "":
			m.Trouble = d.overriddenCondition(t.namespace).message
		case t.blocked:
			m.Trouble = "placed objects stay as they are: " + decision.Message
		case m.Current:
			m.Trouble = reported.failure()
		}
		members[t.name] = m
	}
	return members
}

// failure returns the failure reported by a member's agent; empty if there is none.
func (s worksStatus) failure() string {
	for _, c := range []condition{s.applied, s.diffReported, s.available} {
		if c.status == metav1.ConditionFalse {
			return clip(c.message)
		}
	}
	return ""
}
