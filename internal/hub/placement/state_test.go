package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
)

var (
	now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key = types.NamespacedName{Name: "web"}
)

// world returns a ClusterResourcePlacement of one ConfigMap. The placement may pick the members a
// and b, and no member has the ConfigMap yet.
func world(t *testing.T, change ...func(*observed)) observed {
	t.Helper()
	o := observed{
		key: key, kind: "ClusterResourcePlacement", generation: 1, spec: &placement.PlacementSpec{},
		members: []*scheduling.Member{
			{Name: "a", Namespace: "ns-a", Labels: map[string]string{"env": "prod"}}, {
				Name: "b", Namespace: "ns-b", Labels: map[string]string{"env": "prod"},
			},
		},
		current: map[string]*currentWorks{}, reported: map[string]worksStatus{},
	}
	o.selected.Objects = []*unstructured.Unstructured{configMap("settings", 10)}
	for _, c := range change {
		c(&o)
	}
	var err error
	if o.policy, err = scheduling.Compile(o.spec.Policy, ""); err != nil {
		t.Fatal(err)
	}
	if o.parts, err = pack(o.selected.Objects, nil, maxManifests, false); err != nil {
		t.Fatal(err)
	}
	return o
}

// on gives members the placement as it is, all well.
func on(t *testing.T, members ...string) func(*observed) {
	return func(o *observed) {
		parts, err := pack(o.selected.Objects, nil, maxManifests, false)
		if err != nil {
			t.Fatal(err)
		}
		o.before.ObservedResourceIndex, o.before.ResourceHash, o.before.PolicyHash = "0", hashParts(parts), hashTerms(o.spec.Policy)
		for _, m := range members {
			o.current["ns-"+m] = &currentWorks{
				works: []*placement.Work{placed(t, key, desiredWorks{parts: parts, index: "0", applyStrategy: o.spec.Strategy.ApplyStrategy}, 0)},
			}
			o.reported["ns-"+m] = worksStatus{
				applied: condition{"True", reasons.AllWorkHaveBeenApplied, ""}, available: condition{"True", reasons.AllWorkAreAvailable, ""},
				works: true, ready: true,
			}
		}
	}
}

func obstacle(member int, reason string) func(*observed) {
	return func(o *observed) {
		o.members[member].Obstacle = scheduling.Obstacle{Reason: reason, Message: "it is " + reason}
		o.members[member].Leaving, o.members[member].Lost = reason == reasons.Leaving, reason == reasons.AgentLost
	}
}

// silentSince gives the first member its last heartbeat.
func silentSince(o *observed) { o.members[0].LastBeat = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func requiring(label string) func(*observed) {
	return func(o *observed) {
		name, value, _ := strings.Cut(label, "=")
		o.spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickAll,
			Affinity: &placement.Affinity{ClusterAffinity: &placement.ClusterAffinity{
				Required: &placement.ClusterSelector{
					ClusterSelectorTerms: []placement.ClusterSelectorTerm{{
						LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{name: value}},
					}},
				},
			}}}
	}
}

// said are conditions of a member that all have a status.
func said(status metav1.ConditionStatus) (conditions []metav1.Condition) {
	for _, kind := range append([]string{placement.ConditionScheduled}, applyStages...) {
		conditions = append(conditions, metav1.Condition{Type: kind, Status: status, Reason: "Said"})
	}
	return conditions
}

func reporting(o *observed) {
	o.spec.Strategy.ApplyStrategy = &placement.ApplyStrategy{Type: placement.ApplyReportDiff}
}

func TestWhoHadWorksBeforeTheirDefinitionWasDeletedHasThemAgain(t *testing.T) {
	one := int32(1)
	picked := func(names ...string) func(*observed) {
		return func(o *observed) {
			o.spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickN, NumberOfClusters: &one}
			for _, name := range names {
				o.before.PlacementStatuses = append(o.before.PlacementStatuses,
					placement.PerClusterStatus{ClusterName: name, Conditions: []metav1.Condition{
						{Type: placement.ConditionScheduled, Status: metav1.ConditionTrue},
					}})
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*observed)
		want   string
	}{
		{"nobody had it", picked(), "b"},
		{"the one that had it has it again", picked("a"), "a"},
		{"of two in a status it is still one", picked("a", "b"), "b"},
		{"somebody who is not here any more", picked("c"), "b"},
		{"a Work counts for more than a status", func(o *observed) { picked("b")(o); on(t, "a")(o) }, "a"},
	} {
		var got []string
		for _, d := range decide(world(t, c.change)).result.Decisions {
			if d.Picked {
				got = append(got, d.Name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v are picked, want %s", c.name, got, c.want)
		}
	}
}

func TestDecide(t *testing.T) {
	unlabel := func(o *observed) { o.members[0].Labels = nil }
	otherTerms := func(o *observed) { o.before.PolicyHash = "others" }
	more := func(o *observed) { o.selected.Objects = append(o.selected.Objects, configMap("more", 10)) }
	nothing := func(o *observed) { o.selected.Objects = nil }
	for _, c := range []struct {
		name          string
		seen          observed
		write, remove string
		index         string
	}{
		{"a new placement goes to all", world(t), "a b", "", "0"},
		{"what is there is left alone", world(t, on(t, "a", "b")), "", "", "0"},
		{"whom it lacks gets it", world(t, on(t, "a")), "b", "", "0"},
		{"a change counts up, one member at a time", world(t, on(t, "a", "b"), more), "a", "", "1"},
		{"a selector that is wrong changes nothing", world(t, on(t, "a"), func(o *observed) { o.selected.Problem = "wrong" }), "", "", "0"},
		{"nor does an author whom nobody knows", world(t, on(t, "a"), func(o *observed) {
			o.rightsProblem, o.selected.Objects, o.resources.Objects = condition{metav1.ConditionFalse, reasons.AuthorUnknown, "unknown"}, nil, nil
		}), "", "", "1"},
		{"nor a question that could not be asked", world(t, on(t, "a", "b"), func(o *observed) {
			o.selected.Objects = nil
			o.setRightsError(errors.New("busy"))
		}), "", "", "1"},
		{"what the author may not read any more is removed, one member at a time", world(t, on(t, "a", "b"), func(o *observed) {
			o.selected.Objects, o.author, o.selected.Withheld = nil, "eve", []selection.Query{{Namespace: "shop"}}
		}), "a", "", "1"},
		{
			"who does not admit its namespace gets nothing new and keeps what it has",
			world(t, on(t, "a"), more, func(o *observed) { o.key.Namespace = "shop" }), "", "", "1",
		},
		{"nor does a policy that is wrong", world(t, on(t, "a"), func(o *observed) { o.policyProblem = "wrong" }), "", "", "0"},
		{"what is only to be compared is written, too", world(t, reporting), "a b", "", "0"},
		{"nothing selected is placed, too, so that what is selected later is nothing new", world(t, nothing), "a b", "", "0"},
		{"and what was placed is removed, one member at a time", world(t, on(t, "a", "b"), nothing), "a", "", "1"},
		{"a label that goes removes nothing", world(t, requiring("env=prod"), on(t, "a", "b"), unlabel), "", "", "0"},
		{"terms that change do", world(t, requiring("env=prod"), on(t, "a", "b"), unlabel, otherTerms), "", "a", "0"},
		{"a lost member keeps what it has", world(t, on(t, "a", "b"), obstacle(0, reasons.AgentLost)), "", "", "0"},
		{"and gets nothing new", world(t, obstacle(0, reasons.AgentLost)), "b", "", "0"},
		{"nobody takes the place of a leaving member before it is gone", world(t, on(t, "a"), obstacle(0, reasons.Leaving), func(o *observed) {
			one := int32(1)
			o.spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickN, NumberOfClusters: &one}
		}), "", "", "0"},
		{"a paused placement changes nothing", world(t, on(t, "a"), more, func(o *observed) { o.paused = true }), "", "", "1"},
		{"a paused member keeps what it has", world(t, on(t, "a", "b"), more, func(o *observed) { o.members[0].Paused = true }), "b", "", "1"},
		{"a leaving member is left to its agent", world(t, on(t, "a", "b"), more, obstacle(0, reasons.Leaving)), "b", "", "1"},
	} {
		d := decide(c.seen)
		got := []string{listed(d.plan.write), listed(d.plan.remove), d.desired.index}
		if diff := cmp.Diff([]string{c.write, c.remove, c.index}, got); diff != "" {
			t.Errorf("%s: write, remove, index (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestTermsAreSettledOnceNobodyHasToLoseIt(t *testing.T) {
	unlabelled := func(o *observed) { o.members[0].Labels, o.before.PolicyHash = nil, "others" }
	o := world(t, requiring("env=prod"), on(t, "a", "b"), unlabelled)
	if d := decide(o); d.policyHash != "others" {
		t.Error("the terms count as settled before the member has lost it")
	}
	delete(o.current, "ns-a")
	if d := decide(o); d.policyHash != hashTerms(o.spec.Policy) {
		t.Error("the terms never settle")
	}
}

func TestDescribe(t *testing.T) {
	failing := func(o *observed) {
		o.reported["ns-a"] = worksStatus{applied: condition{"False", reasons.NotAllWorkHaveBeenApplied, "ConfigMap n/c: conflict"}}
	}
	unpicked := func(o *observed) { o.members[1].Labels = map[string]string{} }
	for _, c := range []struct {
		name       string
		seen       observed
		members    string
		message    string
		conditions string // those that are not true
	}{
		{"all well", world(t, on(t, "a", "b")), "2/2", "", ""},
		{"just written", world(t), "0/2", "a, b: being written", "WorkSynchronized Unknown"},
		{"one fails", world(t, on(t, "a", "b"), failing), "1/2", "a: ConfigMap n/c: conflict", "Applied False"},
		{"one of two waits for its turn", world(t, on(t, "a", "b"), func(o *observed) { o.selected.Objects[0] = configMap("settings", 11) }),
			"0/2",
			"b: waits for its turn: at most 1 of 2 members may be unavailable; a: being written", "RolloutStarted False"},
		{
			"nobody qualifies", world(t, requiring("env=none")), "0/0",
			`no member qualifies: a: its labels do not match "env=none"; b: its labels do not match "env=none"`, "",
		},
		{
			"nobody qualifies, and some are leaving anyway", world(t, requiring("env=prod"), obstacle(0, reasons.Leaving),
				obstacle(1, reasons.AgentLost)), "0/0", "no member qualifies: b: it is " + reasons.AgentLost + "; a: it is Leaving", "",
		},
		{"one leaves, and what was said of it last stands", world(t, on(t, "b"), func(o *observed) {
			o.members[0].Leaving, o.members[0].Obstacle = true, scheduling.Obstacle{Reason: reasons.Leaving, Message: "it leaves"}
			o.before.PlacementStatuses = []placement.PerClusterStatus{{ClusterName: "a", Conditions: said("True")}}
		}), "2/2", "", ""},
		{"one is lost while it leaves", world(t, on(t, "b"), obstacle(0, reasons.Leaving), silentSince, func(o *observed) {
			o.members[0].Lost = true
			o.before.PlacementStatuses = []placement.PerClusterStatus{{ClusterName: "a", Conditions: said("True")}}
		}), "1/2", "a: member lost, as of 2026-01-02T03:04:05Z: available", "Available Unknown"},
		{
			"a wrong selector", world(t, on(t, "a", "b"), func(o *observed) { o.selected.Problem = "selector 3 is wrong" }),
			"2/2", "selector 3 is wrong", "Scheduled False",
		},
		{"a wrong policy", world(t, func(o *observed) { o.policyProblem = "term 3 is wrong" }), "", "term 3 is wrong", "Scheduled False"},
		{
			"nothing selected", world(t, func(o *observed) { o.selected.Objects = nil }, on(t, "a", "b")),
			"2/2", "2 members picked; spec.resourceSelectors select nothing that can be placed", "",
		},
		{
			"nothing selected, and not written yet", world(t, func(o *observed) { o.selected.Objects = nil }),
			"0/2", "a, b: being written", "WorkSynchronized Unknown",
		},
		{"not applied, and a field that is not done", world(t, on(t, "a", "b"), failing, reportingBack), "1/2", "a: ConfigMap n/c: conflict",
			"Supported False, Applied False"},
		{"too few", world(t, on(t, "a"), unpicked, func(o *observed) {
			o.spec.Policy = &placement.PlacementPolicy{PlacementType: placement.PickFixed, ClusterNames: []string{"a", "c"}}
		}), "1/2", "1 of 2 members picked; c: there is no MemberCluster, and no Cluster of a workspace that opts in, called c",
			"Scheduled False"},
		{
			"one loses it", world(t, requiring("env=prod"), on(t, "a", "b"),
				func(o *observed) { o.members[1].Labels, o.before.PolicyHash = nil, "others" }), "1/1", "", "",
		},
		{"one of an empty fleet", world(t, func(o *observed) { o.members = nil }), "0/0", "0 members picked; there is no member to pick: " +
			"a MemberCluster is one, and so is each Cluster of a workspace with the label muster/placement=true", ""},
		{"two of an empty fleet", world(t, func(o *observed) {
			o.members, o.spec.Policy = nil, &placement.PlacementPolicy{PlacementType: placement.PickN, NumberOfClusters: new(int32(2))}
		}), "0/2", "0 of 2 members picked; " + noMembers, "Scheduled False"},
		{"one has to wait to lose it", world(t, requiring("env=prod"), on(t, "a", "b"), func(o *observed) {
			o.members[1].Labels, o.before.PolicyHash = nil, "others"
			o.members = append(o.members, &scheduling.Member{Name: "c", Namespace: "ns-c", Labels: map[string]string{"env": "prod"}})
			o.reported["ns-a"] = worksStatus{applied: condition{"Unknown", reasons.ApplyPending, "waits"}}
		}), "0/2", "b loses it when others are available: at most 1 of 2 members may be unavailable; a: waits; c: being written",
			"RolloutStarted False"},
		{"one whose workspace has withdrawn", world(t, on(t, "a", "b"), func(o *observed) { o.members = nil }), "0/0",
			"0 members picked; " + noMembers + "; objects stay, because no workspace for placements has these members any more: " +
				"member namespace ns-a; member namespace ns-b", ""},
		{"only compared, and nothing differs", world(t, reporting, on(t, "a", "b"), func(o *observed) {
			for _, name := range []string{"ns-a", "ns-b"} {
				o.reported[name] = worksStatus{diffReported: condition{"True", reasons.AllWorkHaveDiffReported, ""}}
			}
		}), "2/2", "no difference on any of 2 members", ""},
		{"only compared, and one is not yet", world(t, reporting, on(t, "a", "b"), func(o *observed) {
			o.reported["ns-a"] = worksStatus{
				diffReported: condition{"True", reasons.AllWorkHaveDiffReported, ""}, resourceStatus: resourceStatus{
					diffed: make([]placement.DiffedPlacement, 2),
				},
			}
			o.reported["ns-b"] = worksStatus{diffReported: condition{"Unknown", reasons.DiffReportingPending, "waits"}}
		}), "1/2", "b: waits", "DiffReported Unknown"},
		{
			"a field that is not done", world(t, on(t, "a", "b"), reportingBack),
			"2/2", "spec.strategy.reportBackStrategy: no status is copied back", "Supported False",
		},
		{"a field that asks for what is so", world(t, on(t, "a", "b"), func(o *observed) {
			o.spec.Strategy.ReportBackStrategy = &runtime.RawExtension{Raw: []byte(`{"type":"Disabled"}`)}
		}), "2/2", "", ""},
		{"a lost member has reported long ago that it is available", world(t, on(t, "a", "b"), obstacle(0, reasons.AgentLost), silentSince),
			"1/2", "a: member lost, as of 2026-01-02T03:04:05Z: available", "Available Unknown"},
		{"a lost member has reported long ago that it failed", world(t, on(t, "a", "b"), failing, obstacle(0, reasons.AgentLost), silentSince),
			"1/2", "a: member lost, as of 2026-01-02T03:04:05Z: ConfigMap n/c: conflict", "Applied False"},
		{"only compared, and one is lost since", world(t, reporting, on(t, "a", "b"), obstacle(0, reasons.AgentLost), silentSince,
			func(o *observed) {
				for _, name := range []string{"ns-a", "ns-b"} {
					o.reported[name] = worksStatus{diffReported: condition{"True", reasons.AllWorkHaveDiffReported, ""}}
				}
			}), "1/2", "a: member lost, as of 2026-01-02T03:04:05Z: compared", "DiffReported Unknown"},
		{"runs roll it out, and all have it", world(t, on(t, "a", "b"), byRuns(t)), "2/2", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			after := describe(c.seen, decide(c.seen), nil, now)
			var untrue []string
			for _, kind := range slices.Concat([]string{"Supported", "ClusterResourcePlacementScheduled"}, c.seen.stages()) {
				if kind != "Supported" {
					kind = "ClusterResourcePlacement" + strings.TrimPrefix(kind, "ClusterResourcePlacement")
				}
				if condition := meta.FindStatusCondition(after.Conditions, kind); condition != nil && condition.Status != metav1.ConditionTrue {
					untrue = append(untrue, strings.TrimPrefix(kind, "ClusterResourcePlacement")+" "+string(condition.Status))
				}
			}
			if diff := cmp.Diff([]string{c.members, c.message, c.conditions},
				[]string{after.Members, after.Message, strings.Join(untrue, ", ")}); diff != "" {
				t.Errorf("members, message, conditions (-want +got):\n%s", diff)
			}
			c.seen.before = after
			if diff := cmp.Diff(after, describe(c.seen, decide(c.seen), nil, now.Add(time.Hour))); diff != "" && c.name != "just written" {
				t.Errorf("an hour later, with nothing new, the status differs:\n%s", diff)
			}
		})
	}
}

func TestNothingIsSaidOfTheStagesAfterTheFirstThatIsNotReached(t *testing.T) {
	const written = "Scheduled=True RolloutStarted=True Overridden=True WorkSynchronized=True"
	applied := func(status, reason, message string) func(*observed) {
		return func(o *observed) {
			o.reported["ns-a"] = worksStatus{applied: condition{metav1.ConditionStatus(status), reason, message}}
		}
	}
	third := func(o *observed) {
		o.members = append(o.members, &scheduling.Member{Name: "c", Namespace: "ns-c", Labels: map[string]string{"env": "prod"}})
	}
	changed := func(o *observed) { o.selected.Objects[0] = configMap("settings", 11) }
	for _, c := range []struct {
		name              string
		seen              observed
		failure           error
		placement, member string
		message           string
	}{
		{"all well", world(t, on(t, "a", "b")), nil, written + " Applied=True Available=True", written + " Applied=True Available=True", ""},
		{
			"still to be applied", world(t, on(t, "a", "b"), applied("Unknown", reasons.ApplyPending, "waits")), nil,
			written + " Applied=Unknown", written + " Applied=Unknown", "a: waits",
		},
		{
			"not applied", world(t, on(t, "a", "b"), applied("False", reasons.NotAllWorkHaveBeenApplied, "conflict")), nil,
			written + " Applied=False", written + " Applied=False", "a: conflict",
		},
		{"not available", world(t, on(t, "a", "b"), func(o *observed) {
			o.reported["ns-a"] = worksStatus{
				applied:   condition{"True", reasons.AllWorkHaveBeenApplied, ""},
				available: condition{"False", reasons.NotAllWorkAreAvailable, "crashes"},
			}
		}), nil, written + " Applied=True Available=False", written + " Applied=True Available=False", "a: crashes"},
		{"not written", world(t, on(t, "a", "b")), errors.New("no right"),
			"Scheduled=True RolloutStarted=True Overridden=True WorkSynchronized=False",
			"Scheduled=True RolloutStarted=True Overridden=True WorkSynchronized=False", "a: no right"},
		{"others wait for one that fails", world(t, third, on(t, "a", "b", "c"), applied("False", reasons.NotAllWorkHaveBeenApplied, "conflict"),
			changed), nil, "Scheduled=True RolloutStarted=False", "Scheduled=True RolloutStarted=True Overridden=True WorkSynchronized=Unknown",
			"b, c: waits for its turn: at most 1 of 3 members may be unavailable; a: being written"},
		{"compared", world(t, reporting, on(t, "a", "b"), func(o *observed) {
			o.reported["ns-a"] = worksStatus{diffReported: condition{"False", reasons.NotAllWorkHaveDiffReported, "no right"}}
			o.reported["ns-b"] = worksStatus{diffReported: condition{"True", reasons.AllWorkHaveDiffReported, ""}}
		}), nil, written + " DiffReported=False", written + " DiffReported=False", "a: no right"},
	} {
		after := describe(c.seen, decide(c.seen), failures{"ns-a": c.failure}, now)
		said := func(conditions []metav1.Condition) string {
			var all []string
			for _, condition := range conditions {
				if condition.Type != placement.ConditionSupported {
					all = append(all, fmt.Sprintf("%s=%s", strings.TrimPrefix(condition.Type, c.seen.kind), condition.Status))
				}
			}
			return strings.Join(all, " ")
		}
		got := []string{said(after.Conditions), said(after.PlacementStatuses[0].Conditions), after.Message}
		if diff := cmp.Diff([]string{c.placement, c.member, c.message}, got); diff != "" {
			t.Errorf("%s: the placement's, the member's, the message (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestAStatusOfManyMembersIsBoundedAndShowsThoseInTrouble(t *testing.T) {
	o := world(t, func(o *observed) {
		o.members = nil
		for i := range 2000 {
			name := fmt.Sprintf("m-%04d", i)
			label := "prod"
			if i%2 == 1 {
				label = "dev"
			}
			o.members = append(o.members, &scheduling.Member{Name: name, Namespace: "ns-" + name, Labels: map[string]string{"env": label}})
		}
	}, requiring("env=prod"))
	var all []string
	for _, m := range o.members {
		all = append(all, m.Name)
	}
	on(t, all...)(&o)
	for name, s := range o.reported {
		s.resourceStatus = resourceStatus{
			drifted: make([]placement.DriftedPlacement, maxFailed), diffed: make([]placement.DiffedPlacement, maxFailed),
		}
		o.reported[name] = s
	}
	o.reported["ns-m-1998"] = worksStatus{applied: condition{"False", reasons.NotAllWorkHaveBeenApplied, "no space"}}
	d := decide(o)
	after := describe(o, d, nil, now)
	shown := map[string]bool{}
	picked, detailed := 0, 0
	for _, s := range after.PlacementStatuses {
		detailed += len(s.DriftedPlacements) + len(s.DiffedPlacements)
		shown[s.ClusterName] = true
		if meta.IsStatusConditionTrue(s.Conditions, "Scheduled") {
			picked++
		}
	}
	if picked < 100 || !shown["m-1998"] {
		t.Errorf("%d picked members are shown, the one in trouble %t", picked, shown["m-1998"])
	}
	if detailed == 0 || detailed > 100 {
		t.Errorf("%d resources are shown with their differences", detailed)
	}
	if bytes := size(after); bytes > 256<<10 {
		t.Errorf("the status has %d KiB", bytes>>10)
	}
	if after.Members != "1999/2000" || after.Message != "m-1998: no space" { // dev holds it, too, and keeps it
		t.Errorf("it says %s, %s", after.Members, after.Message)
	}
}

// TestTheWorstStatusCanBeStored has thousands of members that all fail, with texts and names as
// long as they may be.
func TestTheWorstStatusCanBeStored(t *testing.T) {
	long := func(n int) string { return strings.Repeat("<", n) } // six bytes each in JSON
	o := world(t, func(o *observed) {
		o.members, o.selected.Objects = nil, nil
		for i := range 600 {
			o.selected.Objects = append(o.selected.Objects, configMap(fmt.Sprintf("%s-%d", strings.Repeat("c", 200), i), 1))
		}
		for i := range 200 {
			name := fmt.Sprintf("%s/m-%04d", strings.Repeat("w", 60), i)
			o.members = append(o.members, &scheduling.Member{Name: name, Namespace: "ns-" + name})
		}
	})
	var all []string
	for _, m := range o.members {
		all = append(all, m.Name)
	}
	on(t, all...)(&o)
	for name := range o.reported {
		s := worksStatus{applied: condition{"False", reasons.NotAllWorkHaveBeenApplied, long(30000)}}
		for i := range maxFailed {
			s.failed = append(s.failed, placement.FailedPlacement{ResourceIdentifier: placement.ResourceIdentifier{
				Kind: "Widget", Name: fmt.Sprint(i),
			},
				Condition: metav1.Condition{Type: "Applied", Status: "False", Message: long(maxMessage)}})
			s.drifted = append(s.drifted, placement.DriftedPlacement{
				ObservedDrifts: []placement.PatchDetail{{Path: long(maxValue), ValueInHub: long(maxValue), ValueInMember: long(maxValue)}},
			})
		}
		o.reported[name] = s
	}
	if bytes := size(describe(o, decide(o), nil, now)); bytes > 256<<10 {
		t.Errorf("the status has %d KiB", bytes>>10)
	}
}

func TestWhatAgentsSayOfDifferencesIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1000)
	many := make([]placement.PatchDetail, 100)
	for i := range many {
		many[i] = placement.PatchDetail{Path: long, ValueInHub: long, ValueInMember: long}
	}
	work := &placement.Work{}
	for range 100 {
		work.Status.ManifestConditions = append(work.Status.ManifestConditions, placement.ManifestCondition{
			Identifier:   placement.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Name: "c"},
			DriftDetails: &placement.DriftDetails{ObservedDrifts: slices.Clone(many)}, DiffDetails: &placement.DiffDetails{
				ObservedDiffs: slices.Clone(many),
			},
		})
	}
	if _, err := Slim(work); err != nil {
		t.Fatal(err)
	}
	s := (&currentWorks{works: []*placement.Work{work}}).status(func(*placement.Work) time.Time { return now }, 0, now)
	if len(s.drifted) != maxFailed || len(s.diffed) != maxFailed || len(s.drifted[0].ObservedDrifts) != maxDifferences ||
		len(s.diffed[0].ObservedDiffs[0].Path) > maxValue+3 {
		t.Errorf("%d drifted, %d differing, of the first %d differences", len(s.drifted), len(s.diffed), len(s.drifted[0].ObservedDrifts))
	}
}
