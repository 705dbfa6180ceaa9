package dashboard

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// at is what a status says of a picked member whose conditions are true but for the last one that
// is given; all if that is empty.
func at(name, not, message string, status metav1.ConditionStatus) placement.PerClusterStatus {
	s := placement.PerClusterStatus{ClusterName: name, ObservedResourceIndex: "4"}
	for _, kind := range []string{
		placement.ConditionScheduled, placement.ConditionRolloutStarted, placement.ConditionOverridden, placement.ConditionWorkSynchronized,
		placement.ConditionApplied, placement.ConditionAvailable,
	} {
		if kind == not {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Status: status, Message: message})
			break
		}
		s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
	}
	return s
}

func TestWhoWaitsForWhomInARollout(t *testing.T) {
	const no, unknown = metav1.ConditionFalse, metav1.ConditionUnknown
	well := func(name string) placement.PerClusterStatus { return at(name, "", "", "") }
	turn := func(name string) placement.PerClusterStatus {
		return at(name, placement.ConditionRolloutStarted, "waits for its turn: at most 1 of 3 members may be unavailable", no)
	}
	fails := at("fleet/b", placement.ConditionAvailable, "Deployment shop: 0 of 1 replicas", no)
	for name, c := range map[string]struct {
		members []placement.PerClusterStatus
		of      string
		started string
		reason  string
		verdict string
		steps   string
	}{
		"nobody is picked": {
			[]placement.PerClusterStatus{at("a", placement.ConditionScheduled, "has not the labels", no)}, "", "", "", "", "",
		},
		"all have it": {
			[]placement.PerClusterStatus{well("a"), well("b")}, "2/2", "", "", "Finished: 2 members are up to date.",
			"Up to date and available 2/2: a b",
		},
		"the status names but some": {
			[]placement.PerClusterStatus{well("a")}, "700/700", "", "", "Finished: 700 members are up to date.",
			"Up to date and available 700/700: a +699",
		},
		"one is not available": {
			[]placement.PerClusterStatus{well("a"), fails}, "1/2", "", "",
			"In progress: no member waits for its turn, and some have not finished: fleet/b (Deployment shop: 0 of 1 replicas).",
			"Up to date and available 1/2: a; Sent, not yet available 1/2: fleet/b",
		},
		"two wait for it": {
			[]placement.PerClusterStatus{turn("a"), fails, turn("c")}, "0/3", "a: waits for its turn", "",
			"2 members wait for their turn until enough other members are available: fleet/b (Deployment shop: 0 of 1 replicas).",
			"Up to date and available 0/3:; Sent, not yet available 1/3: fleet/b; Waiting for their turn 2/3: a c",
		},
		"one cannot be sent it": {
			[]placement.PerClusterStatus{at("a", placement.ConditionOverridden, "override x: no such path", no)}, "0/1", "", "",
			"In progress: no member waits for its turn, and some have not finished: a (override x: no such path).",
			"Up to date and available 0/1:; Next, or blocked 1/1: a",
		},
		"one is written to": {
			[]placement.PerClusterStatus{turn("a"), at("b", placement.ConditionWorkSynchronized, "being written", unknown)}, "0/2", "", "",
			"1 member waits for its turn until enough other members are available: b (being written).",
			"Up to date and available 0/2:; Next, or blocked 1/2: b; Waiting for their turn 1/2: a",
		},
		"nothing is said of one": {
			[]placement.PerClusterStatus{at("a", placement.ConditionApplied, "", unknown)}, "0/1", "", "",
			"In progress: no member waits for its turn, and some have not finished: a (no report from the hub yet).",
			"Up to date and available 0/1:; Sent, not yet available 1/1: a",
		},
		"nobody can tell if it works": {
			[]placement.PerClusterStatus{well("a"), turn("b")}, "1/2", "", "",
			"1 member waits: b (waits for its turn: at most 1 of 3 members may be unavailable). Resources without a health check " +
				"count as available 5 seconds after Muster applies them.", "Up to date and available 1/2: a; Waiting for their turn 1/2: b",
		},
		"one has yet to lose it": {
			[]placement.PerClusterStatus{well("a")}, "1/1", "old loses it when others are available", "",
			"In progress: old loses it when others are available", "Up to date and available 1/1: a",
		},
		"the author may not read what is selected": {
			[]placement.PerClusterStatus{well("a")}, "1/1", "", "AuthorMayNot", "The hub has stopped the rollout: that is why",
			"Up to date and available 1/1: a",
		},
		"there are too few members": {
			[]placement.PerClusterStatus{well("a")}, "1/1", "", reasons.SchedulingPolicyUnfulfilled,
			"Finished: 1 member is up to date. Fewer members match than the placement requires: that is why",
			"Up to date and available 1/1: a",
		},
		"more fail than there is room": {
			[]placement.PerClusterStatus{turn("a"), at("b", placement.ConditionApplied, "no", no), at("c", placement.ConditionApplied, "no", no),
				at("d", placement.ConditionApplied, "no", no), at("e", placement.ConditionApplied, "no", no)}, "0/5", "", "",
			"1 member waits for its turn until enough other members are available: b (no), c (no), d (no) and 1 more.",
			"Up to date and available 0/5:; Sent, not yet available 4/5: b c d e; Waiting for their turn 1/5: a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := &placement.PlacementStatus{PlacementStatuses: c.members, Members: c.of}
			if c.reason != "" {
				status.Conditions = []metav1.Condition{{
					Type: "ResourcePlacement" + placement.ConditionScheduled, Status: no, Reason: c.reason, Message: "that is why",
				}}
			}
			if c.started != "" {
				status.Conditions = []metav1.Condition{{Type: "ResourcePlacement" + placement.ConditionRolloutStarted, Status: no, Message: c.started}}
			}
			r := rolloutOf("ResourcePlacement",
				&placement.RolloutStrategy{RollingUpdate: &placement.RollingUpdateConfig{UnavailablePeriodSeconds: ptr.To[int32](5)}}, status)
			if r == nil {
				r = &rollout{}
			}
			var steps []string
			for _, s := range r.Steps {
				text := fmt.Sprintf("%s %d/%d:", s.Name, s.Count, s.All)
				for _, m := range s.Members {
					text += " " + m.Name
				}
				if s.More > 0 {
					text += fmt.Sprintf(" +%d", s.More)
				}
				steps = append(steps, text)
			}
			if diff := cmp.Diff([]string{c.verdict, c.steps}, []string{r.Verdict, strings.Join(steps, "; ")}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWhatARealHubSaysOfARolloutIsUnderstood reads placements as hubs have written them.
func TestWhatARealHubSaysOfARolloutIsUnderstood(t *testing.T) {
	shown := 0
	for _, kind := range []string{"ClusterResourcePlacement", "ResourcePlacement"} {
		text, err := os.ReadFile("../explain/testdata/" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var recorded map[string]struct {
			Spec   placement.PlacementSpec
			Status placement.PlacementStatus
		}
		if err := yaml.Unmarshal(text, &recorded); err != nil {
			t.Fatal(err)
		}
		for reason, o := range recorded {
			r := rolloutOf(kind, &o.Spec.Strategy, &o.Status)
			if r == nil {
				continue // the placement picks no member
			}
			shown++
			count, all := 0, 0
			for _, s := range r.Steps {
				count, all = count+s.Count, s.All
			}
			if count != all || strings.HasPrefix(r.Verdict, "Finished") && o.Status.Message != "" {
				t.Errorf("%s %s: %d of %d members are in a step: %s", kind, reason, count, all, r.Verdict)
			}
			if reason == "RolloutNotStartedYet" && !strings.Contains(r.Verdict, " wait") {
				t.Errorf("%s %s: %s", kind, reason, r.Verdict)
			}
		}
	}
	if shown < 10 {
		t.Errorf("only %d of the recordings have a rollout", shown)
	}
}

func TestTheRuleOfARolloutIsThatOfItsStrategy(t *testing.T) {
	const rest = "(at least 1) may be unavailable at a time. During a change, up to 25% more members than required may have the resources."
	for want, strategy := range map[string]placement.RolloutStrategy{
		"At most 25% of the members " + rest: {},
		"At most 2 of the members " + rest: {
			RollingUpdate: &placement.RollingUpdateConfig{MaxUnavailable: ptr.To(intstr.FromInt32(2))},
		},
		"The strategy is External: only a staged update run changes members.": {Type: placement.RolloutExternal},
	} {
		if got := ruleOf(&strategy); got != want {
			t.Errorf("it is %s", got)
		}
	}
	compared := at("a", "", "", "")
	compared.Conditions = append(compared.Conditions[:4], metav1.Condition{
		Type: placement.ConditionDiffReported, Status: metav1.ConditionTrue,
	})
	strategy := &placement.RolloutStrategy{ApplyStrategy: &placement.ApplyStrategy{Type: placement.ApplyReportDiff}}
	if got := rolloutOf("ResourcePlacement", strategy,
		&placement.PlacementStatus{PlacementStatuses: []placement.PerClusterStatus{compared}}); got.Steps[0].Name != "Compared" ||
		got.Steps[0].Count != 1 {
		t.Errorf("what is only compared: %v", got)
	}
}
