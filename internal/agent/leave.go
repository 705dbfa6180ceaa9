package agent

import (
	"cmp"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/kubeclient"
)

// removal is the progress of removing delivered objects from a leaving member.
type removal struct {
	// done is set once nothing is left; progress describes the remaining objects, or why they cannot
	// be removed.
	done     bool
	progress string
}

// leavePolicy returns the leave policy if the hub requests the member to leave, else an empty
// string. Delivered objects stay by default.
func (s *session) leavePolicy() clusterv1beta1.LeavePolicy {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.Spec.State != clusterv1beta1.ClusterStateLeave {
		return ""
	}
	return cmp.Or(s.report.Spec.LeavePolicy, clusterv1beta1.LeaveOrphan)
}

// setRemoval sets the progress of the removal.
func (s *session) setRemoval(progress string, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removal = removal{done: done, progress: progress}
	kubeclient.Notify(s.reportChanged)
	kubeclient.Notify(s.uninstallDue)
}

// setBlocked sets the obstacles to removing objects after their deletion on the hub.
func (s *session) setBlocked(blocked protocol.Blocked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = blocked
	kubeclient.Notify(s.reportChanged)
}

// keepsAll reports whether a leaving member keeps delivered objects. An agent without delivery
// removes nothing either.
func (s *session) keepsAll() bool {
	return s.delivery.Off || s.leavePolicy() == clusterv1beta1.LeaveOrphan
}
