package placement

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
)

// reports replaces what the agent of member a reports.
func reports(s worksStatus) func(*observed) {
	return func(o *observed) { o.reported["ns-a"] = s }
}

func pickN(number int32) func(*observed) {
	return func(o *observed) {
		o.spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickN, NumberOfClusters: &number}
	}
}

// TestConditionsAreThoseThatKubeFleetsClientsCompare holds all conditions of a placement and of its
// members, as STATUS/reason. KubeFleet's clients compare the whole lists.
func TestConditionsAreThoseThatKubeFleetsClientsCompare(t *testing.T) {
	const (
		fulfilled = "Scheduled True/SchedulingPolicyFulfilled"
		written   = "; RolloutStarted True/RolloutStarted; Overridden True/NoOverrideSpecified; WorkSynchronized True/"
		placed    = fulfilled + written + "WorkSynchronized; Applied "
		member    = "Scheduled True/Scheduled" + written + "AllWorkSynced; Applied "
		well      = member + "True/AllWorkHaveBeenApplied; Available True/AllWorkAreAvailable"
	)
	applied := condition{"True", reasons.AllWorkHaveBeenApplied, ""}
	limit := int32(10)
	for _, c := range []struct {
		name    string
		seen    observed
		failure error
		want    []string
	}{
		{
			"all well", world(t, on(t, "a", "b")), nil,
			[]string{placed + "True/ApplySucceeded; Available True/ResourceAvailable", "a: " + well, "b: " + well},
		},
		{"the default of revisionHistoryLimit", world(t, on(t, "a", "b"), func(o *observed) { o.spec.RevisionHistoryLimit = &limit }), nil,
			[]string{placed + "True/ApplySucceeded; Available True/ResourceAvailable", "a: " + well, "b: " + well}},
		{"nothing can tell whether it works", world(t, on(t, "a", "b"),
			reports(worksStatus{applied: applied, available: condition{"True", reasons.NotAllWorkAreAvailabilityTrackable, "?"}})), nil,
			[]string{placed + "True/ApplySucceeded; Available True/ResourceAvailable",
				"a: " + member + "True/AllWorkHaveBeenApplied; Available True/NotAllWorkAreAvailabilityTrackable", "b: " + well}},
		{"being written", world(t), nil, []string{
			fulfilled + written[:strings.Index(written, "WorkSync")] + "WorkSynchronized Unknown/WorkSynchronizedUnknown",
			"a: Scheduled True/Scheduled" + strings.TrimSuffix(written, "True/") + "Unknown/WorkSynchronizedUnknown",
			"b: Scheduled True/Scheduled" + strings.TrimSuffix(written, "True/") + "Unknown/WorkSynchronizedUnknown"}},
		{"not written", world(t, on(t, "a", "b")), errors.New("no right"), []string{
			fulfilled + strings.TrimSuffix(written, "True/") + "False/WorkNotSynchronizedYet",
			"a: Scheduled True/Scheduled" + strings.TrimSuffix(written, "True/") + "False/SyncWorkFailed", "b: " + well}},
		{"not applied yet", world(t, on(t, "a", "b"), reports(worksStatus{applied: condition{"Unknown", reasons.ApplyPending, ""}})), nil,
			[]string{placed + "Unknown/ApplyPending", "a: " + member + "Unknown/ApplyPending", "b: " + well}},
		{"not applied", world(t, on(t, "a", "b"), reports(worksStatus{applied: condition{"False", reasons.NotAllWorkHaveBeenApplied, ""}})), nil,
			[]string{placed + "False/ApplyFailed", "a: " + member + "False/NotAllWorkHaveBeenApplied", "b: " + well}},
		{"not available yet", world(t, on(t, "a", "b"),
			reports(worksStatus{applied: applied, available: condition{"False", reasons.NotAllWorkAreAvailable, ""}})), nil,
			[]string{placed + "True/ApplySucceeded; Available False/ResourceNotAvailableYet",
				"a: " + member + "True/AllWorkHaveBeenApplied; Available False/NotAllWorkAreAvailable", "b: " + well}},
		{"not known to be available", world(t, on(t, "a", "b"),
			reports(worksStatus{applied: applied, available: condition{"Unknown", reasons.ResourceAvailableUnknown, ""}})), nil,
			[]string{placed + "True/ApplySucceeded; Available Unknown/ResourceAvailableUnknown",
				"a: " + member + "True/AllWorkHaveBeenApplied; Available Unknown/ResourceAvailableUnknown", "b: " + well}},
		{"compared", world(t, reporting, on(t, "a"), func(o *observed) {
			o.members = o.members[:1]
			o.reported["ns-a"] = worksStatus{diffReported: condition{"True", reasons.AllWorkHaveDiffReported, ""}}
		}), nil, []string{strings.Replace(placed, "; Applied ", "; DiffReported True/DiffReportingCompleted", 1),
			"a: " + strings.Replace(member, "; Applied ", "; DiffReported True/AllWorkHaveDiffReported", 1)}},
		{"not compared", world(t, reporting, on(t, "a"), func(o *observed) {
			o.members = o.members[:1]
			o.reported["ns-a"] = worksStatus{diffReported: condition{"False", reasons.NotAllWorkHaveDiffReported, ""}}
		}), nil, []string{strings.Replace(placed, "; Applied ", "; DiffReported False/DiffReportingIncompleteOrFailed", 1),
			"a: " + strings.Replace(member, "; Applied ", "; DiffReported False/NotAllWorkHaveDiffReported", 1)}},
		{"waits for its turn", world(t, on(t, "a", "b"), func(o *observed) { o.selected.Objects[0] = configMap("settings", 11) }), nil, []string{
			fulfilled + "; RolloutStarted False/RolloutNotStartedYet",
			"a: Scheduled True/Scheduled" + strings.TrimSuffix(written, "True/") + "Unknown/WorkSynchronizedUnknown",
			"b: Scheduled True/Scheduled; RolloutStarted False/RolloutNotStartedYet"}},
		{"no run has acted", world(t, on(t, "a", "b"), func(o *observed) { o.selected.Objects[0] = configMap("settings", 11) }, byRuns(t)), nil,
			[]string{
				fulfilled + "; RolloutStarted Unknown/RolloutControlledByExternalController",
				"a: Scheduled True/Scheduled; RolloutStarted False/RolloutNotStartedYet",
				"b: Scheduled True/Scheduled; RolloutStarted False/RolloutNotStartedYet"}},
		{"a run has reached one", world(t, on(t, "a", "b"), func(o *observed) { o.selected.Objects[0] = configMap("settings", 11) }, byRuns(t),
			begun("a")), nil, []string{
			fulfilled + "; RolloutStarted Unknown/RolloutControlledByExternalController",
			"a: Scheduled True/Scheduled" + strings.TrimSuffix(written, "True/") + "Unknown/WorkSynchronizedUnknown",
			"b: Scheduled True/Scheduled; RolloutStarted False/RolloutNotStartedYet"}},
		{"PickFixed without names",
			world(t, func(o *observed) { o.spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickFixed} }), nil,
			[]string{"Scheduled Unknown/SchedulePending"}},
		{"PickN of none", world(t, pickN(0)), nil, []string{fulfilled}},
		{"a selector that cannot be meant", world(t, func(o *observed) { o.selected.Problem = "wrong" }), nil,
			[]string{"Scheduled False/InvalidResourceSelectors; ResourceSelected False/InvalidResourceSelectors"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			after := describe(c.seen, decide(c.seen), failures{"ns-a": c.failure}, now)
			if diff := cmp.Diff(c.want, saidOf(c.seen.kind, after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// saidOf lists the conditions of a placement, and then the conditions of each of its members.
func saidOf(kind string, status placement.PlacementStatus) []string {
	list := func(conditions []metav1.Condition) string {
		var all []string
		for _, c := range conditions {
			all = append(all, fmt.Sprintf("%s %s/%s", strings.TrimPrefix(c.Type, kind), c.Status, c.Reason))
		}
		return strings.Join(all, "; ")
	}
	said := []string{list(status.Conditions)}
	for _, s := range status.PlacementStatuses {
		said = append(said, s.ClusterName+": "+list(s.Conditions))
	}
	return said
}

// TestAStatusListsWhatIsMissingAndNotWhoWasNotPicked has two members, of which b has a taint.
func TestAStatusListsWhatIsMissingAndNotWhoWasNotPicked(t *testing.T) {
	tainted := func(o *observed) {
		o.members[1].Obstacle = scheduling.Obstacle{Reason: reasons.TaintNotTolerated, Message: "it is tainted"}
	}
	fixed := func(names ...string) func(*observed) {
		return func(o *observed) {
			o.spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickFixed, ClusterNames: names}
		}
	}
	const failed = "Scheduled False/ScheduleFailed"
	for _, c := range []struct {
		name      string
		seen      observed
		missing   []string
		obstacles []placement.Obstacle
	}{
		{
			"PickAll", world(t, on(t, "a"), tainted), nil, []placement.Obstacle{{
				ClusterName: "b", Reason: "TaintNotTolerated", Message: "it is tainted",
			}},
		},
		{
			"PickN that has as many as it asks for", world(t, pickN(1), on(t, "a"), tainted), nil, []placement.Obstacle{{
				ClusterName: "b", Reason: "TaintNotTolerated", Message: "it is tainted",
			}},
		},
		{
			"PickN that misses one", world(t, pickN(2), on(t, "a"), tainted), []string{"b: " + failed}, []placement.Obstacle{{
				ClusterName: "b", Reason: "TaintNotTolerated", Message: "it is tainted",
			}},
		},
		{"PickN that asks for more than there are", world(t, pickN(4), on(t, "a"), tainted),
			[]string{"b: " + failed, ": " + failed, ": " + failed},
			[]placement.Obstacle{{ClusterName: "b", Reason: "TaintNotTolerated", Message: "it is tainted"}}},
		{"PickFixed that names another", world(t, fixed("a", "c"), on(t, "a")), []string{"c: " + failed},
			[]placement.Obstacle{{
				ClusterName: "c", Reason: "NoSuchMember", Message: "there is no MemberCluster, and no Cluster of a workspace that opts in, called c",
			}}},
		{"a member that stays and would not be picked now", world(t, on(t, "a", "b"), tainted), nil,
			[]placement.Obstacle{{
				ClusterName: "b", Reason: "Kept", Message: "picked before and stays so; now it would not be picked: it is tainted",
			}}},
	} {
		after := describe(c.seen, decide(c.seen), nil, now)
		var missing []string
		for _, said := range saidOf(c.seen.kind, after)[1:] {
			if strings.HasSuffix(said, failed) {
				missing = append(missing, said)
			} else if !strings.Contains(said, ": Scheduled True/Scheduled; RolloutStarted True") {
				t.Errorf("%s: it lists %s", c.name, said)
			}
		}
		if diff := cmp.Diff(c.missing, missing) + cmp.Diff(c.obstacles, after.Obstacles); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestAMemberThatWaitsHasTheNewIndex(t *testing.T) {
	o := world(t, on(t, "a", "b"), func(o *observed) { o.selected.Objects[0] = configMap("settings", 11) })
	after := describe(o, decide(o), nil, now)
	for _, s := range after.PlacementStatuses {
		if s.ObservedResourceIndex != "1" || after.ObservedResourceIndex != "1" {
			t.Errorf("the index of %s is %s, of the placement %s", s.ClusterName, s.ObservedResourceIndex, after.ObservedResourceIndex)
		}
	}
}
