package history

import (
	"fmt"
	"time"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// AdmittedWithin is the longest time from the grant of a request to the entry about its approval.
const AdmittedWithin = time.Hour

// Admitted returns the change about the approval of the request that gave the agent of a Cluster
// its identity. It returns none if no user approved the request, or the history has an approval
// since the grant. An earlier hub wrote no such entry, so an old grant gets none. who returns the
// user; "" if unknown.
func Admitted(r *fleet.ClusterRegistration, recorded []clusterv1beta1.HistoryEntry, now time.Time, who func() string) []Change {
	approved, at := r.Status.ApprovedReason, r.Status.GrantedAt
	if !r.Status.Granted || at == nil || approved == "" || approved == reasons.KeyProved || now.Sub(at.Time) > AdmittedWithin {
		return nil
	}
	if index := lastOf(recorded, clusterv1beta1.HistoryApproved); index >= 0 && !recorded[index].Last().Before(at.Truncate(time.Second)) {
		return nil
	}
	message := fmt.Sprintf("%s approved ClusterRegistration %s%s", named(who()), r.Name, membership.DecidedBecause(r))
	return []Change{{clusterv1beta1.HistoryApproved, kube.Clip(message, maxMessage-len("..."))}}
}
