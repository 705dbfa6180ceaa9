package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/kube"
)

// Bounds of a status, so that it fits into etcd.
const (
	maxShown, maxNotPicked, maxResources = 500, 20, 1000
	// maxNamed is how many of many a message names.
	maxNamed = 3
	// maxFailures is how many failed resources all members together show, maxMessage how long a message may be.
	maxFailures, maxMessage = 1000, 500
	// maxDetailed is of how many resources all members together show in what they differ.
	maxDetailed = 100
)

// More reasons of conditions.
const (
	reasonFulfilled     = "SchedulingPolicyFulfilled"
	reasonUnfulfilled   = "SchedulingPolicyUnfulfilled"
	reasonInvalidPolicy = "InvalidPolicy"
	reasonInvalid       = "InvalidResourceSelectors"
	reasonNothing       = "NothingSelected"
	reasonRolloutDone   = "RolloutStarted"
	reasonRolloutWaits  = "RolloutNotStartedYet"
	reasonNoOverride    = "NoOverrideSpecified"
	reasonSynced        = "WorkSynchronized"
	reasonNotSynced     = "WorkNotSynchronizedYet"
	reasonSupported     = "Supported"
	reasonUnsupported   = "FieldsNotSupported"
)

// describe computes the status. It is the only place that sets it, but for what is said while a placement is being removed.
func describe(o observed, d decision, failures failed, now time.Time) placement.PlacementStatus {
	after := *o.before.DeepCopy()
	var lines []line
	for _, picked := range d.result.Picked() {
		lines = append(lines, o.line(picked, d, failures[picked.Member.Namespace]))
	}
	if o.policyProblem == "" {
		after.PlacementStatuses = o.show(lines, d, now)
		available := 0
		for _, l := range lines {
			if l.trouble() == 0 {
				available++
			}
		}
		after.Members = fmt.Sprintf("%d/%d", available, d.result.Wanted)
	}
	if d.problem == (verdict{}) {
		after.ObservedResourceIndex, after.ResourceHash, after.PolicyHash = d.cargo.index, d.cargo.hash, d.settledPolicy
		after.SelectedResources = nil
		for _, r := range o.selected.Objects[:min(maxResources, len(o.selected.Objects))] {
			gvk := r.GroupVersionKind()
			after.SelectedResources = append(after.SelectedResources, placement.ResourceIdentifier{
				Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: r.GetNamespace(), Name: r.GetName(),
			})
		}
	}
	set := func(kind string, v verdict) {
		meta.SetStatusCondition(&after.Conditions, metav1.Condition{
			Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: o.generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	supported, scheduled, losing := o.supported(), o.scheduled(d), losing(d)
	set(placement.ConditionSupported, supported)
	set(o.kind+placement.ConditionScheduled, scheduled)
	after.Message = ""
	for _, v := range []verdict{scheduled, supported} {
		if v.status != metav1.ConditionTrue && after.Message == "" {
			after.Message = v.message
		}
	}
	for _, stage := range append(slices.Clone(stagesOfApplying), placement.ConditionDiffReported) {
		if len(lines) == 0 || !slices.Contains(o.order(), stage) {
			meta.RemoveStatusCondition(&after.Conditions, o.kind+stage)
			continue
		}
		v := summarize(stage, lines)
		if stage == placement.ConditionRolloutStarted && losing != "" {
			v = verdict{metav1.ConditionFalse, reasonRolloutWaits, losing}
		}
		if set(o.kind+stage, v); after.Message == "" && (v.status != metav1.ConditionTrue || stage == placement.ConditionDiffReported) {
			after.Message = v.message
		}
	}
	if len(lines) == 0 && after.Message == "" {
		after.Message = scheduled.message
	}
	return after
}

// losing names who has to wait for its turn to lose the placement; "" if nobody.
func losing(d decision) string {
	var waiting []target
	for _, t := range d.plan.waiting {
		if !t.wanted {
			waiting = append(waiting, t)
		}
	}
	if len(waiting) == 0 {
		return ""
	}
	return fmt.Sprintf("%s will lose it when others are available: at most %d of %d members may be unavailable", names(waiting), d.plan.unavailable, d.plan.of)
}

// show lists the picked members, those in trouble first if there are too many, and some of the others with the reason.
func (o observed) show(lines []line, d decision, now time.Time) []placement.PerClusterStatus {
	shown := slices.Clone(lines)
	if len(shown) > maxShown {
		slices.SortStableFunc(shown, func(a, b line) int { return b.trouble() - a.trouble() })
		shown = shown[:maxShown]
		slices.SortFunc(shown, func(a, b line) int { return strings.Compare(a.Name, b.Name) })
	}
	before := map[string][]metav1.Condition{}
	for _, s := range o.before.PlacementStatuses {
		before[s.ClusterName] = s.Conditions
	}
	entry := func(name string, verdicts map[string]verdict) placement.PerClusterStatus {
		s := placement.PerClusterStatus{ClusterName: name}
		for _, kind := range slices.Concat([]string{placement.ConditionScheduled}, o.order()) {
			v, said := verdicts[kind]
			if !said {
				continue
			}
			c := metav1.Condition{Type: kind, Status: v.status, Reason: v.reason, Message: clip(v.message), ObservedGeneration: o.generation, LastTransitionTime: metav1.NewTime(now)}
			if old := meta.FindStatusCondition(before[name], kind); old != nil && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			s.Conditions = append(s.Conditions, c)
		}
		return s
	}
	var all []placement.PerClusterStatus
	details := maxDetailed
	for _, l := range shown {
		l.stages[placement.ConditionScheduled] = verdict{metav1.ConditionTrue, l.Reason, l.Message}
		s := entry(l.Name, l.stages)
		l.limit(max(maxFailures/len(shown), 1))
		l.drifted, l.diffed = take(l.drifted, &details), take(l.diffed, &details)
		s.ObservedResourceIndex, s.FailedPlacements, s.DriftedPlacements, s.DiffedPlacements = l.index, l.failed, l.drifted, l.diffed
		all = append(all, s)
	}
	for _, n := range o.notPicked(d) {
		message := n.Message
		if o.holds(n) {
			message += "; what it has of the placement is being removed"
		}
		all = append(all, entry(n.Name, map[string]verdict{placement.ConditionScheduled: {metav1.ConditionFalse, n.Reason, message}}))
	}
	return all
}

// take returns the first of many, as far as there is room.
func take[T any](all []T, room *int) []T {
	all = all[:min(len(all), *room)]
	*room -= len(all)
	return all
}

// holds says whether a member has something of the placement.
func (o observed) holds(d scheduling.Decision) bool {
	return d.Member != nil && o.holdings[d.Member.Namespace] != nil
}

// notPicked returns some of those that are not picked: first who has yet to lose the placement, then whom the policy names, then whom only a
// passing obstacle keeps away, then the others. Whom PickFixed does not name nobody has asked about.
func (o observed) notPicked(d decision) []scheduling.Decision {
	var others []scheduling.Decision
	for _, n := range d.result.Decisions {
		if !n.Picked && (n.Reason != scheduling.ReasonNotNamed || o.holds(n)) {
			others = append(others, n)
		}
	}
	// What is not in the list comes first.
	order := []string{scheduling.ReasonSpread, scheduling.ReasonTainted, scheduling.ReasonOutranked, scheduling.ReasonNoMatch}
	rank := func(n scheduling.Decision) int {
		if o.holds(n) {
			return -2
		}
		return slices.Index(order, n.Reason)
	}
	slices.SortStableFunc(others, func(a, b scheduling.Decision) int { return rank(a) - rank(b) })
	named := 0
	for _, n := range others {
		if n.Reason == scheduling.ReasonNoSuchMember {
			named++
		}
	}
	others = others[:min(max(maxNotPicked, named), len(others))]
	slices.SortFunc(others, func(a, b scheduling.Decision) int { return strings.Compare(a.Name, b.Name) })
	return others
}

func (o observed) supported() verdict {
	if fields := unsupported(o.spec); fields != "" {
		return verdict{metav1.ConditionFalse, reasonUnsupported, fields}
	}
	message := ""
	if unread := o.selected.Unread; len(unread) > 0 {
		message = fmt.Sprintf("the hub may not read %s, so that nothing of these is placed with a Namespace; allow it in placement.resources of the chart fleet", some(unread))
	}
	return verdict{metav1.ConditionTrue, reasonSupported, message}
}

func (o observed) scheduled(d decision) verdict {
	picked := len(d.result.Picked())
	var why []string
	for _, n := range d.result.Decisions {
		if !n.Picked && n.Reason != scheduling.ReasonNotNamed {
			why = append(why, fmt.Sprintf("%s: %s", n.Name, n.Message))
		}
	}
	switch {
	case d.problem != (verdict{}):
		return d.problem
	case len(o.selected.Objects) == 0:
		return verdict{metav1.ConditionFalse, reasonNothing, "spec.resourceSelectors select nothing that can be placed"}
	case picked < d.result.Wanted:
		message := fmt.Sprintf("%d of %d members picked", picked, d.result.Wanted)
		if len(why) > 0 {
			message += "; " + some(why)
		}
		return verdict{metav1.ConditionFalse, reasonUnfulfilled, message + o.strays(d)}
	case picked == 0 && len(why) > 0:
		return verdict{metav1.ConditionTrue, reasonFulfilled, "no member qualifies: " + some(why) + o.strays(d)}
	case picked == 0:
		return verdict{metav1.ConditionTrue, reasonFulfilled, "there is no member to pick" + o.strays(d)}
	}
	return verdict{metav1.ConditionTrue, reasonFulfilled, fmt.Sprintf("%d members picked", picked) + o.strays(d)}
}

// strays says who has the placement and can be picked no more, because the workspace has withdrawn: nothing there is changed or taken away.
func (o observed) strays(d decision) string {
	known := map[string]bool{}
	for _, n := range d.result.Decisions {
		if n.Member != nil {
			known[n.Member.Namespace] = true
		}
	}
	var strays []string
	for _, namespace := range slices.Sorted(maps.Keys(o.holdings)) {
		if !known[namespace] && !o.holdings[namespace].going {
			strays = append(strays, "member namespace "+namespace)
		}
	}
	if len(strays) == 0 {
		return ""
	}
	return "; kept as it is, because no workspace that opts in has a record of it any more: " + some(strays)
}

// summarize is what a condition says of all picked members together.
func summarize(stage string, lines []line) verdict {
	sum := lines[0].stages[stage]
	var said []string
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for _, l := range lines {
			if v := l.stages[stage]; v.status == status {
				said = append(said, fmt.Sprintf("%s: %s", l.Name, clip(v.message)))
				sum = sum.worst(v)
			}
		}
	}
	if len(said) > 0 {
		return verdict{sum.status, sum.reason, some(said)}
	}
	for _, l := range lines {
		v := l.stages[stage]
		if v.reason == reasonUntrackable {
			sum = v
		}
		if stage == placement.ConditionDiffReported && v.message != "" {
			said = append(said, fmt.Sprintf("%s: %s", l.Name, v.message))
		}
	}
	if len(said) > 0 {
		return verdict{sum.status, sum.reason, some(said)}
	}
	everywhere := "on all %d members"
	if stage == placement.ConditionDiffReported {
		everywhere = "no difference on any of %d members"
	}
	return verdict{sum.status, sum.reason, cmp.Or(sum.message, fmt.Sprintf(everywhere, len(lines)))}
}

// some names the first of many.
func some(all []string) string {
	text := strings.Join(all[:min(maxNamed, len(all))], "; ")
	if more := len(all) - maxNamed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// clip shortens what an agent says, which may be longer than all the rest.
func clip(message string) string {
	return kube.Clip(message, maxMessage)
}
