package agent

import (
	"cmp"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/agent/deployer"
	"github.com/muster-fleet/muster/internal/agent/report"
)

// departure is how far the member is with leaving. The fields belong to the runner's lock.
type departure struct {
	// emptied says that nothing is left of what was placed, left what is, or why it cannot be removed.
	emptied bool
	left    string
}

// leaves says whether the hub asks the member to leave, and what becomes of what was placed on it: it stays unless the hub says otherwise.
func (r *runner) leaves() clusterv1beta1.LeavePolicy {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked.Spec.State != clusterv1beta1.ClusterStateLeave {
		return ""
	}
	return cmp.Or(r.asked.Spec.LeavePolicy, clusterv1beta1.LeaveOrphan)
}

// empty takes how far that is.
func (r *runner) empty(left string, emptied bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.departure = departure{emptied: emptied, left: left}
	poke(r.departing)
}

// block takes what keeps something that was taken away on the hub from being removed here.
func (r *runner) block(blocked deployer.Blocked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocked = blocked
	poke(r.departing)
}

// unpruned is what the report says of that.
func (r *runner) unpruned() report.Unpruned {
	r.mu.Lock()
	defer r.mu.Unlock()
	return report.Unpruned(r.blocked)
}

// ready says whether the member may go, as far as it is asked to leave, and if not, how far it is. An agent that delivers nothing removes
// nothing either.
func (r *runner) ready() (ready bool, progress string) {
	keeps := r.delivery.Off || r.leaves() == clusterv1beta1.LeaveOrphan
	r.mu.Lock()
	defer r.mu.Unlock()
	return keeps || r.departure.emptied, r.departure.left
}

// depart begins a departure anew, or ends it, when the hub asks for something else than before. The lock is held.
func (r *runner) depart(before, asked clusterv1beta1.InternalMemberClusterSpec) {
	if before.State == asked.State && before.LeavePolicy == asked.LeavePolicy {
		return
	}
	r.departure = departure{}
	poke(r.departing)
	poke(r.renewed)
	poke(r.placed)
}
