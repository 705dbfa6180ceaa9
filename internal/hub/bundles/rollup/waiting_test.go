package rollup

import (
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
)

// TestAWaitIsNoErrorAndClientsOfRancherFleetKnowItsState: what they read has their states only.
func TestAWaitIsNoErrorAndClientsOfRancherFleetKnowItsState(t *testing.T) {
	for _, c := range []struct {
		name         string
		entries      []Entry
		wire, reason string
		pending      int
	}{
		{"paused", []Entry{{Name: "a", State: fleet.StatePaused}}, "Pending", "Paused", 1},
		{"outside of a window", []Entry{{Name: "a", State: fleet.StateOutsideWindow}}, "Pending", "OutsideWindow", 1},
		{
			"both", []Entry{{Name: "a", State: fleet.StatePaused}, {Name: "b", State: fleet.StateOutsideWindow}},
			"Pending", "OutsideWindow", 2,
		},
		{
			"one is held back by the rollout", []Entry{{Name: "a", State: fleet.StatePaused}, {Name: "b", State: fleet.StatePending}},
			"Pending", "Pending", 2,
		},
		{
			"one is not ready, and another waits for it",
			[]Entry{{Name: "a", State: fleet.StateNotReady}, {Name: "b", State: fleet.StateWaitingForDependency}}, "NotReady", "NotReady", 0,
		},
		{"a dependency", []Entry{{Name: "b", State: fleet.StateWaitingForDependency}}, "WaitingForDependency", "WaitingForDependency", 0},
	} {
		got := Summarize(c.entries)
		if string(Worst(got)) != c.wire || Reason(got) != c.reason || got.Pending != c.pending || got.ErrApplied != 0 {
			t.Errorf("%s: %s, %s, %+v", c.name, Worst(got), Reason(got), got)
		}
		for _, named := range got.NonReadyResources {
			if named.State != delivery.Wire(named.State) {
				t.Errorf("%s: %s is shown as %s", c.name, named.Name, named.State)
			}
		}
		var sum fleet.BundleSummary
		Add(&sum, got)
		Add(&sum, got)
		if Reason(sum) != c.reason || sum.Pending != 2*c.pending || sum.Paused != 2*got.Paused || sum.OutsideWindow != 2*got.OutsideWindow {
			t.Errorf("%s: the sum is %+v", c.name, sum)
		}
	}
}
