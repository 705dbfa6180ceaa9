package membership

import (
	"fmt"
	"time"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// OutsideWindow returns the reason why Schedules let nothing change on a Cluster now; "" if they
// do.
func OutsideWindow(status *fleet.ClusterStatus) string {
	switch {
	case !status.Scheduled || status.ActiveSchedule:
		return ""
	case status.Window == nil || status.Window.Opens.IsZero():
		return "outside of the windows of its Schedules, and none opens again"
	}
	return fmt.Sprintf("outside of the windows of its Schedules until %s", status.Window.Opens.UTC().Format(time.RFC3339))
}
