package placement

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/kube"
)

// The conditions of a picked member, in the order of their progress: for applied resources, and for
// resources compared only.
var (
	writingStages = []string{placement.ConditionRolloutStarted, placement.ConditionOverridden, placement.ConditionWorkSynchronized}
	applyStages   = append(slices.Clone(writingStages), placement.ConditionApplied, placement.ConditionAvailable)
	diffStages    = append(slices.Clone(writingStages), placement.ConditionDiffReported)
	allStages     = append(slices.Clone(applyStages), placement.ConditionDiffReported)
)

// stages returns the conditions of this placement.
func (o observed) stages() []string {
	if reportsDiff(o.spec.Strategy.ApplyStrategy) {
		return diffStages
	}
	return applyStages
}

// unknownReasons are the reasons of a placement's conditions before its members are known.
var unknownReasons = map[string]string{
	placement.ConditionRolloutStarted: reasons.RolloutStartedUnknown, placement.ConditionOverridden: reasons.OverriddenPending,
	placement.ConditionWorkSynchronized: reasons.WorkSynchronizedUnknown, placement.ConditionApplied: reasons.ApplyPending,
	placement.ConditionAvailable: reasons.ResourceAvailableUnknown, placement.ConditionDiffReported: reasons.DiffReportingPending,
}

// memberStatus is the part of a placement's status for one picked member.
type memberStatus struct {
	scheduling.Decision
	index      string
	stages     []string
	conditions map[string]condition
	resourceStatus
}

// severity ranks members that need attention. An earlier incomplete stage ranks higher, and False
// ranks before Unknown.
func (m memberStatus) severity() int {
	for i, stage := range m.stages {
		switch m.conditions[stage].status {
		case metav1.ConditionFalse:
			return 2*len(m.stages) - i
		case metav1.ConditionUnknown:
			return len(m.stages) - i
		case metav1.ConditionTrue: // the stage is complete
		}
	}
	return 0
}

// last returns the condition of the first incomplete stage, or else of the last stage.
func (m memberStatus) last() (last condition) {
	for _, stage := range m.stages {
		if c, set := m.conditions[stage]; set {
			last = c
		}
	}
	return last
}

// memberStatuses returns the statuses of all picked members. A leaving member keeps its last one:
// its Works go because it leaves.
func (o observed) memberStatuses(d decision, failed failures) (members []memberStatus) {
	for _, picked := range d.result.Picked() {
		m := o.memberStatus(picked, d, failed[picked.Member.Namespace])
		if picked.Member.Leaving {
			m.restore(o.before)
			if picked.Member.Lost {
				m.lastReported(m.conditions)
			}
		}
		members = append(members, m)
	}
	return members
}

// memberStatus returns the status of one picked member. As in KubeFleet's API there are no
// conditions for stages after the first incomplete one.
func (o observed) memberStatus(picked scheduling.Decision, d decision, failure error) memberStatus {
	namespace := picked.Member.Namespace
	m := memberStatus{Decision: picked, stages: o.stages(), conditions: map[string]condition{}}
	current, reported := o.current[namespace], o.reported[namespace]
	started, synced := condition{metav1.ConditionTrue, reasons.RolloutStarted, ""}, condition{metav1.ConditionTrue, reasons.AllWorkSynced, ""}
	if current != nil {
		m.index, m.resourceStatus = current.works[0].Labels[placement.LabelResourceIndex], reported.resourceStatus
	}
	waits, upToDate := d.waiting[namespace], d.upToDate[namespace]
	if d.problem == (condition{}) && !(d.plan.held && waits) {
		m.index = d.desired.index // also for a waiting member, as in KubeFleet's API
	}
	switch {
	case failure != nil:
		synced = condition{metav1.ConditionFalse, reasons.SyncWorkFailed, failure.Error()}
	case waits && current != nil && current.deleting:
		started = condition{metav1.ConditionFalse, reasons.RolloutNotStartedYet, "earlier placed objects are being removed first"}
	case waits && picked.Member.Quarantined:
		started = condition{metav1.ConditionFalse, reasons.RolloutNotStartedYet, "the member is quarantined; placed objects stay as they are"}
	case waits && picked.Member.Paused:
		started = condition{metav1.ConditionFalse, reasons.RolloutNotStartedYet, "the member is paused; placed objects stay as they are"}
	case waits && d.plan.held:
		started = condition{metav1.ConditionFalse, reasons.RolloutNotStartedYet, "no staged update run has reached it; placed objects " +
			"stay as they are"}
	case waits:
		started = condition{metav1.ConditionFalse, reasons.RolloutNotStartedYet, fmt.Sprintf(
			"waits for its turn: at most %d of %d members may be unavailable", d.plan.maxUnavailable, d.plan.wanted)}
	case !upToDate && !picked.Member.Admits(o.key.Namespace):
		synced = condition{metav1.ConditionFalse, reasons.SyncWorkFailed, "placed objects stay as they are: " + picked.Message}
	case !upToDate && d.problem == (condition{}):
		synced = condition{metav1.ConditionUnknown, reasons.WorkSynchronizedUnknown, "being written"}
	case current == nil:
		synced = condition{metav1.ConditionUnknown, reasons.WorkSynchronizedUnknown, "nothing is written before the placement can be scheduled"}
	}
	applied, diffReported := m.explain(reported.applied), m.explain(reported.diffReported)
	if diffReported.status == metav1.ConditionTrue {
		diffReported.message = reported.describeDiffs()
	}
	stages := map[string]condition{
		placement.ConditionRolloutStarted:   started,
		placement.ConditionOverridden:       d.overriddenCondition(namespace),
		placement.ConditionWorkSynchronized: synced,
		placement.ConditionApplied:          applied,
		placement.ConditionAvailable:        reported.available,
		placement.ConditionDiffReported:     diffReported,
	}
	if picked.Member.Lost {
		m.lastReported(stages)
	}
	for _, stage := range m.stages {
		if m.conditions[stage] = stages[stage]; stages[stage].status != metav1.ConditionTrue {
			break
		}
	}
	return m
}

// restore copies the member's entry from a status.
func (m *memberStatus) restore(status placement.PlacementStatus) {
	for _, s := range status.PlacementStatuses {
		if s.ClusterName != m.Name || !meta.IsStatusConditionTrue(s.Conditions, placement.ConditionScheduled) {
			continue
		}
		m.index, m.conditions = s.ObservedResourceIndex, map[string]condition{}
		m.resourceStatus = resourceStatus{failed: s.FailedPlacements, drifted: s.DriftedPlacements, diffed: s.DiffedPlacements}
		for _, c := range s.Conditions {
			m.conditions[c.Type] = condition{c.Status, c.Reason, c.Message}
		}
	}
}

// explain adds the reason to an Unknown condition if no agent can report.
func (m memberStatus) explain(c condition) condition {
	if c.status == metav1.ConditionUnknown && unreachable(m.Member) {
		c.message = m.Member.Obstacle.Message
	}
	return c
}

// lastReports has the words for the complete stages in a lost member's last report, and whether
// they may have changed since.
var lastReports = map[string]struct {
	word    string
	changes bool
	reason  string
}{
	placement.ConditionApplied:      {word: "applied"},
	placement.ConditionAvailable:    {"available", true, reasons.ResourceAvailableUnknown},
	placement.ConditionDiffReported: {"compared", true, reasons.DiffReportingPending},
}

// lastReported marks the reports of a lost member as its last ones, once. Everything that may have
// changed since is Unknown.
func (m memberStatus) lastReported(conditions map[string]condition) {
	for stage, last := range lastReports {
		c := conditions[stage]
		switch {
		case c == (condition{}) || c.status == metav1.ConditionUnknown || membership.IsAsOf(c.message):
			continue
		case c.status == metav1.ConditionTrue && last.changes:
			c.status, c.reason = metav1.ConditionUnknown, last.reason
		}
		c.message = membership.AsOf("member lost", m.Member.LastBeat, cmp.Or(c.message, last.word))
		conditions[stage] = c
	}
}

// summarize returns the condition of all picked members together.
func summarize(stage string, members []memberStatus) condition {
	members = slices.DeleteFunc(slices.Clone(members), func(m memberStatus) bool { return m.conditions[stage] == (condition{}) })
	if len(members) == 0 {
		return condition{metav1.ConditionUnknown, unknownReasons[stage], "the state of the members is not known yet"}
	}
	sum := members[0].conditions[stage].ofPlacement()
	var messages []string
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		var failing []kube.Named
		for _, m := range members {
			if c := m.conditions[stage]; c.status == status {
				failing = append(failing, kube.Named{Name: m.Name, Text: clip(c.message)})
				sum = sum.worst(c.ofPlacement())
			}
		}
		for _, group := range kube.GroupTexts(failing) {
			messages = append(messages, group.String())
		}
	}
	if len(messages) > 0 {
		return condition{sum.status, sum.reason, list(messages)}
	}
	for _, m := range members {
		c := m.conditions[stage]
		if c.reason == reasons.NotAllWorkAreAvailabilityTrackable || c.reason == reasons.OverriddenSucceeded {
			sum = c.ofPlacement()
		}
		if (stage == placement.ConditionDiffReported || m.Member.Lost) && c.message != "" {
			messages = append(messages, fmt.Sprintf("%s: %s", m.Name, c.message))
		}
	}
	if len(messages) > 0 {
		return condition{sum.status, sum.reason, list(messages)}
	}
	everywhere := "on all %d members"
	if stage == placement.ConditionDiffReported {
		everywhere = "no difference on any of %d members"
	}
	return condition{sum.status, sum.reason, cmp.Or(sum.message, fmt.Sprintf(everywhere, len(members)))}
}

// summarizeRollout returns the condition RolloutStarted of all picked members, with the members
// that the rollout waits for. They have yet to lose the placement, or were written to and are not
// available.
func summarizeRollout(d decision, members []memberStatus) condition {
	if d.plan.held && len(d.plan.waiting) > 0 {
		return condition{metav1.ConditionUnknown, reasons.RolloutControlledByExternalController, fmt.Sprintf(
			"spec.strategy.type is External: no staged update run has reached %s, where nothing changes", listNames(d.plan.waiting))}
	}
	sum := summarize(placement.ConditionRolloutStarted, members)
	losing := slices.DeleteFunc(slices.Clone(d.plan.waiting), func(t target) bool { return t.wanted })
	if len(losing) > 0 {
		message := "%s loses it when others are available: at most %d of %d members may be unavailable"
		message = fmt.Sprintf(message, listNames(losing), d.plan.maxUnavailable, d.plan.wanted)
		sum = condition{metav1.ConditionFalse, reasons.RolloutNotStartedYet, message}
	}
	if sum.status == metav1.ConditionTrue {
		return sum
	}
	var unavailable []string
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for _, m := range members {
			if last := m.last(); last.status == status && m.conditions[placement.ConditionRolloutStarted].status == metav1.ConditionTrue {
				unavailable = append(unavailable, fmt.Sprintf("%s: %s", m.Name, clip(last.message)))
			}
		}
	}
	if len(unavailable) > 0 {
		sum.message += "; " + list(unavailable)
	}
	return sum
}
