package membership

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestAClusterIsOutsideOfItsWindowsOnlyIfASchedule(t *testing.T) {
	opens := metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.FixedZone("there", 3600)))
	for _, c := range []struct {
		name   string
		status fleet.ClusterStatus
		want   string
	}{
		{"no Schedule selects it", fleet.ClusterStatus{}, ""},
		{"one selected it before", fleet.ClusterStatus{Window: &fleet.ClusterWindow{Opens: &opens}}, ""},
		{"a window is open", fleet.ClusterStatus{Scheduled: true, ActiveSchedule: true}, ""},
		{
			"a window follows", fleet.ClusterStatus{Scheduled: true, Window: &fleet.ClusterWindow{Opens: &opens}},
			"outside of the windows of its Schedules until 2026-01-02T02:00:00Z",
		},
		{
			"no window follows", fleet.ClusterStatus{Scheduled: true, Window: &fleet.ClusterWindow{}},
			"outside of the windows of its Schedules, and none opens again",
		},
		{
			"another client took the time away", fleet.ClusterStatus{Scheduled: true},
			"outside of the windows of its Schedules, and none opens again",
		},
	} {
		if got := OutsideWindow(&c.status); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
