package placement

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
)

// The conditions of a picked member, in the order in which they come true, if resources are applied there and if they are only compared.
var (
	stagesOfWriting   = []string{placement.ConditionRolloutStarted, placement.ConditionOverridden, placement.ConditionWorkSynchronized}
	stagesOfApplying  = append(slices.Clone(stagesOfWriting), placement.ConditionApplied, placement.ConditionAvailable)
	stagesOfReporting = append(slices.Clone(stagesOfWriting), placement.ConditionDiffReported)
)

// order is the stages of this placement.
func (o observed) order() []string {
	if reportsOnly(o.spec.Strategy.ApplyStrategy) {
		return stagesOfReporting
	}
	return stagesOfApplying
}

// line is what the status says of one picked member.
type line struct {
	scheduling.Decision
	index  string
	stages map[string]verdict
	order  []string
	troubles
}

// trouble is how much attention a member needs: the earlier the stage that is not reached, the more, and what failed before what is pending.
func (l line) trouble() int {
	for i, stage := range l.order {
		switch l.stages[stage].status {
		case metav1.ConditionFalse:
			return 2*len(l.order) - i
		case metav1.ConditionUnknown:
			return len(l.order) - i
		}
	}
	return 0
}

// line says how one picked member stands.
func (o observed) line(picked scheduling.Decision, d decision, failure error) line {
	namespace := picked.Member.Namespace
	l := line{Decision: picked, order: o.order(), stages: map[string]verdict{placement.ConditionOverridden: {metav1.ConditionTrue, reasonNoOverride, ""}}}
	h, s := o.holdings[namespace], o.standing[namespace]
	started, synced := verdict{metav1.ConditionTrue, reasonRolloutDone, ""}, verdict{metav1.ConditionTrue, reasonSynced, ""}
	if h != nil {
		l.index, l.troubles = h.works[0].Labels[placement.LabelResourceIndex], s.troubles
	}
	waits := slices.ContainsFunc(d.plan.waiting, func(t target) bool { return t.namespace == namespace })
	switch {
	case failure != nil:
		synced = verdict{metav1.ConditionFalse, reasonNotSynced, failure.Error()}
	case waits && h != nil && h.going:
		started = verdict{metav1.ConditionFalse, reasonRolloutWaits, "what was placed before is being removed first"}
	case waits:
		started = verdict{metav1.ConditionFalse, reasonRolloutWaits, fmt.Sprintf("waits for its turn: at most %d of %d members may be unavailable", d.plan.unavailable, d.plan.of)}
	case !d.current[namespace] && d.problem == (verdict{}):
		synced = verdict{metav1.ConditionUnknown, reasonNotSynced, "being written"}
	}
	if started.status != metav1.ConditionTrue {
		synced = verdict{metav1.ConditionUnknown, reasonNotSynced, "the roll-out has not come to it"}
	}
	l.stages[placement.ConditionRolloutStarted], l.stages[placement.ConditionWorkSynchronized] = started, synced
	l.hear(s, h != nil && synced.status == metav1.ConditionTrue)
	return l
}

// hear adds what the agent says of what was written.
func (l *line) hear(s standing, written bool) {
	pending := map[string]string{placement.ConditionApplied: reasonApplyPending, placement.ConditionDiffReported: reasonReportPending}
	if s.reported.status == metav1.ConditionTrue {
		s.reported.message = s.differing()
	}
	said := map[string]verdict{placement.ConditionApplied: s.applied, placement.ConditionAvailable: s.available, placement.ConditionDiffReported: s.reported}
	for _, stage := range l.order[len(stagesOfWriting):] {
		l.stages[stage] = said[stage]
		if !written {
			l.stages[stage] = verdict{metav1.ConditionUnknown, cmp.Or(pending[stage], reasonAvailableLater), "not written yet"}
		}
		if reason := pending[stage]; reason != "" && idle(l.Member) && l.stages[stage].status == metav1.ConditionUnknown {
			l.stages[stage] = verdict{metav1.ConditionUnknown, reason, l.Member.Obstacle.Message}
		}
	}
}
