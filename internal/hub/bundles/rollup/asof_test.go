package rollup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestNoLastReportCountsAsReady(t *testing.T) {
	seen := time.Date(2026, 11, 27, 10, 42, 0, 0, time.UTC)
	const stamp = "agent lost, as of 2026-11-27T10:42:00Z: "
	for _, c := range []struct{ before, after Entry }{
		{Entry{State: fleet.StateReady}, Entry{State: fleet.StateNotReady, Message: stamp + "Ready", Gone: true}},
		{Entry{State: fleet.StateNotReady, Message: "Job x"}, Entry{State: fleet.StateNotReady, Message: stamp + "Job x", Gone: true}},
		{Entry{State: fleet.StateErrApplied}, Entry{State: fleet.StateErrApplied, Message: stamp + "ErrApplied", Gone: true}},
		{Entry{State: fleet.StatePending, Message: "held back"}, Entry{State: fleet.StatePending, Message: "held back"}},
	} {
		if diff := cmp.Diff(c.after, c.before.AsOf("agent lost", seen)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.before.State, diff)
		}
	}
	ready, lost := Entry{State: fleet.StateReady}, Entry{State: fleet.StateReady}.AsOf("agent lost", seen)
	failed := Entry{State: fleet.StateErrApplied}
	for want, entries := range map[bool][][]Entry{true: {{lost}, {ready, lost}}, false: {{}, {ready}, {lost, failed}}} {
		for _, all := range entries {
			if AllGone(all) != want {
				t.Errorf("%v: want %t", all, want)
			}
		}
	}
	counts := Unconfirmed(fleet.ResourceCounts{Ready: 3, NotReady: 1, DesiredReady: 4})
	if diff := cmp.Diff(fleet.ResourceCounts{Unknown: 3, NotReady: 1, DesiredReady: 4}, counts); diff != "" {
		t.Error(diff)
	}
}
