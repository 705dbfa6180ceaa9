package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/kube"
)

// refreshSoonest is how soon at the earliest a record whose heartbeat is to be shown anew is reconciled again: no agent beats less often.
const refreshSoonest = time.Minute

// RefreshIn is after how long the record of a member that is online is reconciled to show a newer heartbeat. It counts from the one that is shown, so that
// a hub that restarts writes no record earlier for that, and not all of them at once. A status may show a time in the future, which an agent of Rancher
// Fleet has written: that postpones nothing.
func (o Observed) RefreshIn(now time.Time) time.Duration {
	return max(min(o.RecordedBeat.Add(o.Refresh).Sub(now), o.Refresh), refreshSoonest)
}

// spread makes a time up to a quarter shorter, always by the same part for a record.
func spread(d time.Duration, uid types.UID) time.Duration {
	return d - time.Duration(kube.Jitter(uid)*float64(d)/4)
}
