package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

const (
	// mostNamed limits the members named in a step. mostBlockers limits the blocking members with
	// a reason.
	mostNamed    = 20
	mostBlockers = 3
)

// rollout is the progress of a placement on its picked members, according to its status.
type rollout struct {
	// Verdict describes the waiting members and their reasons. Rule describes the limits of a
	// change.
	Verdict, Rule string
	Steps         []step
}

// step is a stage of progress with its members.
type step struct {
	Name string
	// Count of All members are in this step; some of them are named.
	Count, All int
	Members    []link
	More       int
}

// progress is the progress of one member.
type progress int

// A member passes them from the first to the last.
const (
	waits     progress = iota // its turn has not come
	beingSent                 // it is sent the newest resources, or is blocked
	sent                      // it has them, and they are not available yet
	done
)

// stepNames and comparedNames describe the progress of members: for applied resources, and for
// resources compared only.
var (
	stepNames = []string{
		waits: "Waiting for their turn", beingSent: "Next, or blocked",
		sent: "Sent, not yet available", done: "Up to date and available",
	}
	comparedNames = []string{
		waits: stepNames[waits], beingSent: stepNames[beingSent], sent: "Sent, not yet compared",
		done: "Compared",
	}
)

// progressOf returns the progress of a member, and its first unmet condition.
func progressOf(conditions []metav1.Condition, onlyCompares bool) (progress, metav1.Condition) {
	last := []string{placement.ConditionApplied, placement.ConditionAvailable}
	if onlyCompares {
		last = []string{placement.ConditionDiffReported}
	}
	order := append([]string{placement.ConditionRolloutStarted, placement.ConditionOverridden, placement.ConditionWorkSynchronized}, last...)
	for i, kind := range order {
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil {
			c = &metav1.Condition{Type: kind, Status: metav1.ConditionUnknown}
		}
		if c.Status != metav1.ConditionTrue {
			return []progress{waits, beingSent, beingSent, sent, sent}[i], *c
		}
	}
	return done, metav1.Condition{}
}

// rolloutOf returns the rollout of a placement; nil before it has picked a member. The status names
// at most some hundreds of the members, those with a problem first.
func rolloutOf(kind string, strategy *placement.RolloutStrategy, status *placement.PlacementStatus) *rollout {
	onlyCompares := strategy.ApplyStrategy != nil && strategy.ApplyStrategy.Type == placement.ApplyReportDiff
	members, missing := map[progress][]string{}, map[string]metav1.Condition{}
	listed := 0
	for _, m := range status.PlacementStatuses {
		if !meta.IsStatusConditionTrue(m.Conditions, placement.ConditionScheduled) {
			continue // it is listed with the reason why it is not picked
		}
		listed++
		at, c := progressOf(m.Conditions, onlyCompares)
		members[at] = append(members[at], m.ClusterName)
		missing[m.ClusterName] = c
	}
	if listed == 0 {
		return nil
	}
	_, total := share(status.Members)
	total = max(total, listed)
	r := &rollout{Rule: ruleOf(strategy)}
	for _, stage := range []progress{done, sent, beingSent, waits} {
		one := step{Name: stepNames[stage], Count: len(members[stage]), All: total}
		if stage == done {
			one.Count += total - listed // unnamed members are well
		}
		if onlyCompares {
			one.Name = comparedNames[stage]
		}
		names, _ := atMost(mostNamed, members[stage])
		for _, name := range names {
			one.Members = append(one.Members, link{name, memberPath(name)})
		}
		if one.More = one.Count - len(names); one.Count > 0 || stage == done {
			r.Steps = append(r.Steps, one)
		}
	}
	started := meta.FindStatusCondition(status.Conditions, kind+placement.ConditionRolloutStarted)
	r.Verdict = verdictOf(members, missing, total, strategy, started)
	if c := meta.FindStatusCondition(status.Conditions, kind+placement.ConditionScheduled); c != nil && c.Status == metav1.ConditionFalse {
		if c.Reason != reasons.SchedulingPolicyUnfulfilled {
			r.Verdict = "The hub has stopped the rollout: " + c.Message
			return r
		}
		r.Verdict += " Fewer members match than the placement requires: " + c.Message
	}
	return r
}

// verdictOf describes the waiting members and their reasons. Besides the listed members it uses the
// condition of the placement itself: the condition covers members before their removal.
func verdictOf(members map[progress][]string, missing map[string]metav1.Condition, total int, strategy *placement.RolloutStrategy,
	started *metav1.Condition) string {
	waiting, blocking := members[waits], slices.Concat(members[sent], members[beingSent])
	unfinished := started != nil &&
		(started.Status == metav1.ConditionFalse || started.Status == metav1.ConditionUnknown && len(blocking) == 0)
	switch {
	case len(waiting) == 0 && unfinished:
		return "In progress: " + started.Message
	case len(waiting) == 0 && len(blocking) == 0:
		return fmt.Sprintf("Finished: %s.", amount(total, "is up to date", "are up to date"))
	case len(waiting) == 0:
		return fmt.Sprintf("In progress: no member waits for its turn, and some have not finished: %s.", named(blocking, missing))
	case len(blocking) > 0:
		return fmt.Sprintf("%s until enough other members are available: %s.",
			amount(len(waiting), "waits for its turn", "wait for their turn"), named(blocking, missing))
	}
	text := fmt.Sprintf("%s: %s.", amount(len(waiting), "waits", "wait"), named(waiting, missing))
	if len(members[done]) > 0 {
		text += fmt.Sprintf(" Resources without a health check count as available %d seconds after Muster applies them.",
			unavailablePeriod(strategy))
	}
	return text
}

// amount returns a number of members with a verb.
func amount(n int, one, many string) string {
	if n == 1 {
		return "1 member " + one
	}
	return fmt.Sprintf("%d members %s", n, many)
}

// named returns some of the members, each with its unmet condition.
func named(names []string, missing map[string]metav1.Condition) string {
	shown, more := atMost(mostBlockers, names)
	var texts []string
	for _, name := range shown {
		texts = append(texts, fmt.Sprintf("%s (%s)", name, cmp.Or(strings.TrimSpace(missing[name].Message), "no report from the hub yet")))
	}
	text := strings.Join(texts, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ruleOf describes how many members may change at a time.
func ruleOf(strategy *placement.RolloutStrategy) string {
	most, surge := "25%", "25%"
	if c := strategy.RollingUpdate; c != nil {
		if c.MaxUnavailable != nil {
			most = c.MaxUnavailable.String()
		}
		if c.MaxSurge != nil {
			surge = c.MaxSurge.String()
		}
	}
	if strategy.Type == placement.RolloutExternal {
		return "The strategy is External: only a staged update run changes members."
	}
	return fmt.Sprintf("At most %s of the members (at least 1) may be unavailable at a time. During a change, up to %s more members than "+
		"required may have the resources.", most, surge)
}

// numbered returns the index of a member's snapshot, marked if it is the latest.
func numbered(index, latest string) string {
	if index != "" && index == latest {
		return index + " (latest)"
	}
	return index
}

// unavailablePeriod returns the period of a strategy, in seconds.
func unavailablePeriod(strategy *placement.RolloutStrategy) int32 {
	if c := strategy.RollingUpdate; c != nil && c.UnavailablePeriodSeconds != nil {
		return *c.UnavailablePeriodSeconds
	}
	return 60
}
