package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/kube"
)

// refreshSoonest is the shortest delay until the refresh of a shown heartbeat: no agent sends
// heartbeats less often.
const refreshSoonest = time.Minute

// RefreshIn returns the delay until the hub shows a newer heartbeat of an online member. The delay
// counts from the shown heartbeat, so a restarted hub writes no membership object earlier, and not
// all at once. A status may show a time in the future, written by an agent of Rancher Fleet; such a
// time postpones nothing.
func (o Observed) RefreshIn(now time.Time) time.Duration {
	return max(min(o.RecordedBeat.Add(o.Refresh).Sub(now), o.Refresh), refreshSoonest)
}

// spread shortens a time by up to a quarter, always by the same part for a given UID.
func spread(d time.Duration, uid types.UID) time.Duration {
	return d - time.Duration(kube.Jitter(uid)*float64(d)/4)
}
