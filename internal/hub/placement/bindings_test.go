package placement

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// shown are bindings, a line each, with the reasons of their conditions.
func shown(all map[string]binding) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b := all[name]
		line := fmt.Sprintf("%s: %s %s %s", name, b.spec.TargetCluster, b.spec.State, b.spec.ResourceSnapshotName)
		if b.pending {
			lines = append(lines, line+" pending")
			continue
		}
		for _, c := range b.status.Conditions {
			line += " " + c.Reason
		}
		lines = append(lines, line)
	}
	return lines
}

// decidedBy labels the Work of a member with a binding.
func decidedBy(member, name string) func(*observed) {
	return func(o *observed) {
		o.current["ns-"+member].works[0].Labels[placement.LabelParentBinding] = name
	}
}

func TestBindingsShowWhatMembersHave(t *testing.T) {
	const well = " RolloutStarted NoOverrideSpecified AllWorkSynced AllWorkHaveBeenApplied AllWorkAreAvailable"
	const snapshot = "web-0-snapshot"
	const b = "web-ns-b: b Bound " + snapshot + well
	more := func(o *observed) { o.selected.Objects[0] = configMap("settings", 11) }
	otherTerms := func(o *observed) { o.before.PolicyHash = "others" }
	for _, c := range []struct {
		name   string
		seen   observed
		failed failures
		want   []string
	}{
		{"all is well", world(t, on(t, "a", "b")), nil, []string{"web-ns-a: a Bound " + snapshot + well, b}},
		{"being written", world(t, on(t, "b")), nil, []string{"web-ns-a: a Bound " + snapshot + " pending", b}},
		{"not written", world(t, on(t, "b")), failures{"ns-a": errors.New("no right")},
			[]string{"web-ns-a: a Scheduled " + snapshot + " RolloutStarted NoOverrideSpecified SyncWorkFailed", b}},
		{"a member that waits for its turn has the new revision", world(t, on(t, "a", "b"), more), nil, []string{
			"web-ns-a: a Bound web-1-snapshot pending", "web-ns-b: b Bound web-1-snapshot RolloutNotStartedYet"}},
		{"a member that loses it", world(t, on(t, "a", "b"), requiring("env=prod"), otherTerms, func(o *observed) { o.members[0].Labels = nil }),
			nil,
			[]string{"web-ns-a: a Unscheduled " + snapshot, b}},
		{"a member that is not picked", world(t, on(t, "b"), obstacle(0, reasons.Unhealthy)), nil, []string{b}},
		{
			"KubeFleet's hub has placed it", world(t, on(t, "a", "b"), decidedBy("a", "web-a-1a2b3c4d")), nil,
			[]string{"web-a-1a2b3c4d: a Bound " + snapshot + well, b},
		},
		{
			"a member says that another has it", world(t, on(t, "a", "b"), decidedBy("a", "web-b-1a2b3c4d")), nil,
			[]string{"web-ns-a: a Bound " + snapshot + well, b},
		},
		{
			"a member writes no name of an object", world(t, on(t, "a", "b"), decidedBy("a", "web-a-No_Name")), nil,
			[]string{"web-ns-a: a Bound " + snapshot + well, b},
		},
	} {
		s := ofCRP(&placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: key.Name, UID: "u"}})
		all := c.seen.bindings(s, decide(c.seen), c.failed)
		if diff := cmp.Diff(c.want, shown(all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		for name, b := range all {
			if !metav1.IsControlledBy(b, s) || b.GetLabels()[placement.LabelParentCRP] != key.Name {
				t.Errorf("%s: %s is of nobody: %+v", c.name, name, b)
			}
		}
	}
}

func TestABindingIsWrittenOnlyWhenItSaysSomethingElse(t *testing.T) {
	s := ofCRP(&placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: key.Name, UID: "u"}})
	made := func(change func(binding)) binding {
		b := s.newBinding("web-ns-a")
		b.SetGeneration(2)
		*b.spec = placement.ResourceBindingSpec{State: placement.BindingBound, TargetCluster: "a", ResourceSnapshotName: "web-0-snapshot"}
		b.status.Conditions = []metav1.Condition{{
			Type: "Applied", Status: "True", Reason: reasons.AllWorkHaveBeenApplied, ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(now),
		}}
		change(b)
		return b
	}
	for name, row := range map[string]struct {
		is, want binding
		same     bool
	}{
		"the same": {made(func(binding) {}),
			made(func(b binding) { b.status.Conditions[0].LastTransitionTime = metav1.Time{} }), true},
		"another revision": {made(func(binding) {}), made(func(b binding) { b.spec.ResourceSnapshotName = "web-1-snapshot" }), false},
		"another reason": {made(func(binding) {}),
			made(func(b binding) { b.status.Conditions[0].Reason = reasons.NotAllWorkHaveBeenApplied }), false},
		"an older generation": {made(func(b binding) { b.SetGeneration(3) }), made(func(binding) {}), false},
		"one that goes": {made(func(b binding) { b.SetDeletionTimestamp(&metav1.Time{Time: now}) }),
			made(func(b binding) { b.spec.State = "" }), true},
		"nothing known yet of a new": {made(func(b binding) { b.SetGeneration(3) }),
			made(func(b binding) { b.status.Conditions = nil }).unknown(), true},
	} {
		if got := row.is.shows(row.want); got != row.same {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func (b binding) unknown() binding {
	b.pending = true
	return b
}

// TestAWorkThatIsAddedIsOfTheBindingOfTheOthers: KubeFleet's hub, were it to come back, finds all
// Works of a member by the name of one binding.
func TestAWorkThatIsAddedIsOfTheBindingOfTheOthers(t *testing.T) {
	o := world(t, on(t, "a"), decidedBy("a", "web-a-1a2b3c4d"))
	if got := o.current["ns-a"].binding(key, "a", "ns-a"); got != "web-a-1a2b3c4d" {
		t.Errorf("a Work that is added is of %s", got)
	}
	var none *currentWorks
	if got := none.binding(key, "a", "fleet-member-a"); got != "web-fleet-member-a" {
		t.Errorf("the first Work is of %s", got)
	}
	if got := none.binding(key, strings.Repeat("a", 50), "fleet-member-"+strings.Repeat("a", 50)); len(got) > 63 {
		t.Errorf("it is no value of a label: %s", got)
	}
}
