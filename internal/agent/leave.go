package agent

import (
	"cmp"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// removal is how far a member that leaves is with removing what was placed on it.
type removal struct {
	// done says that nothing is left, progress says what is, or why it cannot be removed.
	done     bool
	progress string
}

// leavePolicy says whether the hub asks the member to leave, and what becomes of what was placed on it: it stays unless the hub says otherwise.
func (s *session) leavePolicy() clusterv1beta1.LeavePolicy {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.Spec.State != clusterv1beta1.ClusterStateLeave {
		return ""
	}
	return cmp.Or(s.report.Spec.LeavePolicy, clusterv1beta1.LeaveOrphan)
}

// setRemoval sets how far the removal is.
func (s *session) setRemoval(progress string, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removal = removal{done: done, progress: progress}
	kubeclient.Notify(s.reportChanged)
}

// setBlocked sets what keeps something from being removed that was deleted on the hub.
func (s *session) setBlocked(blocked protocol.Blocked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = blocked
	kubeclient.Notify(s.reportChanged)
}

// keepsAll says whether a member that leaves keeps what was placed on it. An agent that delivers nothing removes nothing either.
func (s *session) keepsAll() bool {
	return s.delivery.Off || s.leavePolicy() == clusterv1beta1.LeaveOrphan
}
