package placement

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxResources and maxOverrides limit a status: its resources, and the overrides of all members
// together.
const maxResources, maxOverrides = 1000, 1000

// maxBytes limits the listed bytes of a status: 256 KiB, less some for the conditions.
// maxResourcesBytes of these may be resources.
const maxBytes, maxResourcesBytes = 220 << 10, 140 << 10

// detail is the amount of data about members in a status. picked limits the picked members,
// message the length of their messages. failures and differing limit the failures and differing
// resources of all of them together.
type detail struct{ picked, message, failures, differing int }

// details are tried in this order until the status is small enough.
var details = []detail{
	{500, maxMessage, 1000, 100}, {350, 150, 300, 40}, {180, 150, 200, 20}, {120, 150, 100, 10}, {60, 100, 50, 5}, {15, 50, 5, 2},
}

// selectsNothing is no failure, as in KubeFleet's API: members are picked and get Works without
// manifests.
const selectsNothing = "spec.resourceSelectors select nothing that can be placed"

// describe computes the status. Only the message of a placement under deletion is set elsewhere.
func describe(o observed, d decision, failed failures, now time.Time) placement.PlacementStatus {
	after := *o.before.DeepCopy()
	members := o.memberStatuses(d, failed)
	if d.problem == (condition{}) {
		after.ObservedResourceIndex, after.ResourceHash, after.PolicyHash = d.desired.index, d.desired.hash, d.policyHash
		after.ResourceIndexes = o.listVersions()
		if o.staging != nil {
			after.ObservedResourceIndex = o.commonIndex(d)
		}
		after.SelectedResources = o.listResources()
	}
	if o.policyProblem == "" {
		after.Obstacles = o.obstacles(d)
		room := maxBytes - size(after.SelectedResources) - size(after.Obstacles)
		for _, much := range details {
			after.PlacementStatuses = o.listMembers(members, d, now, much)
			if size(after.PlacementStatuses) <= room {
				break
			}
		}
		available := 0
		for _, m := range members {
			if m.severity() == 0 {
				available++
			}
		}
		after.Members = fmt.Sprintf("%d/%d", available, d.result.Wanted)
	}
	o.setConditions(&after, d, members, now)
	return after
}

// listResources lists the selected objects, as far as there is room.
func (o observed) listResources() (listed []placement.ResourceIdentifier) {
	bytes := 0
	for _, r := range o.selected.Objects[:min(maxResources, len(o.selected.Objects))] {
		gvk := r.GroupVersionKind()
		id := placement.ResourceIdentifier{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: r.GetNamespace(), Name: r.GetName()}
		if bytes += size(id) + 1; bytes > maxResourcesBytes {
			break
		}
		listed = append(listed, id)
	}
	return listed
}

// listsAll reports whether a status certainly lists all selected resources.
func listsAll(resources []placement.ResourceIdentifier) bool {
	const largest = 2 << 10 // of an identifier
	return len(resources) < maxResources && size(resources) < maxResourcesBytes-largest
}

// size returns the bytes of a value in a status.
func size(of any) int {
	text, err := json.Marshal(of)
	if err != nil {
		return 0 // all of it can be encoded
	}
	return len(text)
}

// setConditions sets the conditions of the placement, and its message from the first condition with
// a problem.
func (o observed) setConditions(after *placement.PlacementStatus, d decision, members []memberStatus, now time.Time) {
	set := func(kind string, c condition) {
		if c == (condition{}) {
			meta.RemoveStatusCondition(&after.Conditions, kind)
		} else {
			meta.SetStatusCondition(&after.Conditions, c.as(kind, o.generation, now))
		}
	}
	supported, scheduled, withheld, leftovers := o.supported(), o.scheduled(d), o.withheld(), condition{}
	if o.leftovers != "" {
		leftovers = condition{metav1.ConditionFalse, reasons.KubeFleetLeftovers, o.leftovers}
	}
	set(placement.ConditionSupported, supported)
	set(o.kind+placement.ConditionScheduled, scheduled)
	set(placement.ConditionLeftoversRemoved, leftovers)
	set(o.kind+placement.ConditionResourceSelected, cmp.Or(o.selectionProblem(), withheld))
	after.Message = withheld.message
	if scheduled.status != metav1.ConditionTrue {
		after.Message = scheduled.message
	}
	reached := len(members) > 0
	for _, stage := range allStages {
		if !reached || !slices.Contains(o.stages(), stage) {
			set(o.kind+stage, condition{})
			continue
		}
		c := summarize(stage, members)
		if stage == placement.ConditionRolloutStarted {
			c = summarizeRollout(d, members)
		}
		reached = c.status == metav1.ConditionTrue
		if ignored := o.ignoredOverrides(); reached && stage == placement.ConditionOverridden && ignored != (condition{}) {
			c, after.Message = ignored, cmp.Or(after.Message, ignored.message) // the later stages continue without the override
		}
		if reached && stage == placement.ConditionOverridden {
			c.message = cmp.Or(c.message, o.idleOverrides(d))
		}
		if reached && stage == placement.ConditionApplied {
			c.message = cmp.Or(c.message, o.idleRules())
		}
		if set(o.kind+stage, c); after.Message == "" && (!reached || stage == placement.ConditionDiffReported) {
			after.Message = c.message
		}
	}
	switch {
	case after.Message != "":
	case supported != (condition{}):
		after.Message = supported.message
	case len(members) == 0 || len(o.selected.Objects) == 0:
		after.Message = scheduled.message
	}
}

// listMembers lists the picked members. If there are too many, it lists the members with the most
// urgent problems. It adds an entry for each member requested by the policy but not picked.
func (o observed) listMembers(members []memberStatus, d decision, now time.Time, much detail) (statuses []placement.PerClusterStatus) {
	picked := slices.Clone(members)
	if len(picked) > much.picked {
		slices.SortStableFunc(picked, func(a, b memberStatus) int { return b.severity() - a.severity() })
		picked = picked[:much.picked]
		slices.SortFunc(picked, func(a, b memberStatus) int { return strings.Compare(a.Name, b.Name) })
	}
	before := map[string]placement.PerClusterStatus{}
	for _, s := range o.before.PlacementStatuses {
		before[s.ClusterName] = s
	}
	entry := func(name string, conditions map[string]condition) placement.PerClusterStatus {
		s := placement.PerClusterStatus{ClusterName: name}
		for _, kind := range slices.Concat([]string{placement.ConditionScheduled}, o.stages()) {
			c, isSet := conditions[kind]
			if !isSet {
				continue
			}
			c.message = kube.Clip(c.message, much.message)
			is := c.as(kind, o.generation, now)
			if was := meta.FindStatusCondition(before[name].Conditions, kind); was != nil && was.Status == is.Status {
				is.LastTransitionTime = was.LastTransitionTime
			}
			s.Conditions = append(s.Conditions, is)
		}
		return s
	}
	differing, overrides := much.differing, maxOverrides
	for _, m := range picked {
		m.conditions[placement.ConditionScheduled] = condition{metav1.ConditionTrue, reasons.Scheduled, m.Message}
		s := entry(m.Name, m.conditions)
		m.limit(max(much.failures/len(picked), 1))
		s.ObservedResourceIndex, s.DriftedPlacements, s.DiffedPlacements = m.index, take(m.drifted, &differing), take(m.diffed, &differing)
		s.FailedPlacements = setTimes(clipped(m.failed, much.message), before[m.Name].FailedPlacements, metav1.NewTime(now))
		applied := d.overridden[m.Member.Namespace]
		s.ApplicableClusterResourceOverrides, s.ApplicableResourceOverrides = take(applied.Cluster, &overrides),
			take(applied.Namespaced, &overrides)
		statuses = append(statuses, s)
	}
	for _, n := range o.missing(d) {
		statuses = append(statuses, entry(n.Name, map[string]condition{
			placement.ConditionScheduled: {metav1.ConditionFalse, reasons.ScheduleFailed, n.Message},
		}))
	}
	return statuses
}

// clipped shortens the messages of failures.
func clipped(failed []placement.FailedPlacement, most int) []placement.FailedPlacement {
	failed = slices.Clone(failed)
	for i := range failed {
		failed[i].Condition.Message = kube.Clip(failed[i].Condition.Message, most)
	}
	return failed
}

// take returns the first of many, as far as there is room.
func take[T any](all []T, room *int) []T {
	all = all[:min(len(all), *room)]
	*room -= len(all)
	return all
}

// setTimes gives failures found by the hub itself their time from the previous status, or the
// current one.
func setTimes(failed, before []placement.FailedPlacement, now metav1.Time) []placement.FailedPlacement {
	for i := range failed {
		if c := &failed[i].Condition; c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = now
			for _, old := range before {
				if old.Condition.Reason == c.Reason && old.Condition.Message == c.Message && old.Name == failed[i].Name && old.Kind == failed[i].Kind {
					c.LastTransitionTime = old.Condition.LastTransitionTime
				}
			}
		}
	}
	return failed
}

// supported names the fields without an effect; the zero condition if the placement uses none.
func (o observed) supported() condition {
	if fields := unsupportedFields(o.spec.Strategy); fields != "" {
		return condition{metav1.ConditionFalse, reasons.FieldsNotSupported, fields}
	}
	return condition{}
}

// noMembers explains how a fleet gets members for placements.
const noMembers = "there is no member to pick: a MemberCluster is one, and so is each Cluster of a workspace with the label " +
	LabelOptIn + "=true"

func (o observed) scheduled(d decision) condition {
	if d.problem != (condition{}) {
		return d.problem
	}
	picked := len(d.result.Picked())
	var obstacles, last []string // the least relevant members come last
	for _, n := range d.result.Decisions {
		switch reason := fmt.Sprintf("%s: %s", n.Name, n.Message); {
		case n.Picked || n.Reason == reasons.NotNamed:
		case n.Reason == reasons.NamespaceNotAdmitted, n.Reason == reasons.Leaving:
			last = append(last, reason)
		default:
			obstacles = append(obstacles, reason)
		}
	}
	obstacles = append(obstacles, last...)
	c := condition{metav1.ConditionTrue, reasons.SchedulingPolicyFulfilled, fmt.Sprintf("%d members picked", picked)}
	switch {
	case picked < d.result.Wanted:
		c = condition{metav1.ConditionFalse, reasons.SchedulingPolicyUnfulfilled, fmt.Sprintf("%d of %d members picked", picked, d.result.Wanted)}
		if len(obstacles) > 0 {
			c.message += "; " + list(obstacles)
		} else if len(o.members) == 0 {
			c.message += "; " + noMembers
		}
	case picked == 0 && o.policy.NamesNobody(): // as in KubeFleet's API nothing is decided yet
		c = condition{metav1.ConditionUnknown, reasons.SchedulePending, "spec.policy names no member"}
	case picked == 0 && o.policy.PicksNobody():
		c.message = "spec.policy requires no member"
	case picked == 0 && len(obstacles) > 0:
		c.message = "no member qualifies: " + list(obstacles)
	case picked == 0:
		c.message += "; " + noMembers
	case len(o.selected.Objects) == 0:
		c.message += "; " + selectsNothing
	}
	if len(o.selected.Missing) > 0 {
		c.message += "; the hub has no " + list(o.selected.Missing)
	}
	if unread := o.selected.Unread; len(unread) > 0 {
		c.message += fmt.Sprintf("; the hub cannot read %s, so that nothing of these is placed with a Namespace; if it may not, allow it in "+
			"placement.resources of the chart fleet", list(unread))
	}
	if withdrawn := o.withdrawn(d); len(withdrawn) > 0 {
		c.message += "; objects stay, because no workspace for placements has these members any more: " + list(withdrawn)
	}
	return c
}

// withdrawn returns the member namespaces with Works in workspaces without the opt-in now: nothing
// is changed or deleted there.
func (o observed) withdrawn(d decision) (namespaces []string) {
	considered := map[string]bool{}
	for _, n := range d.result.Decisions {
		if n.Member != nil {
			considered[n.Member.Namespace] = true
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(o.current)) {
		if !considered[namespace] && !o.current[namespace].deleting {
			namespaces = append(namespaces, "member namespace "+namespace)
		}
	}
	return namespaces
}
