package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// HistoryReason is the kind of a change in the life of a member, in the same words for a Cluster
// and a MemberCluster.
//
// +kubebuilder:validation:MaxLength=253
type HistoryReason string

// The values of HistoryReason.
const (
	// HistoryJoined: the agent has joined, for the first time or again.
	HistoryJoined HistoryReason = "Joined"
	// HistoryApprovalRequired: the member or its request waits for an approval.
	HistoryApprovalRequired HistoryReason = "ApprovalRequired"
	// HistoryApproved: a user has approved the member or its request.
	HistoryApproved HistoryReason = "Approved"
	// HistoryDenied: a registration request for the member was denied, by a user or by the hub.
	HistoryDenied HistoryReason = "Denied"
	// HistoryLost: the agent has missed its heartbeats.
	HistoryLost HistoryReason = "Lost"
	// HistoryBack: the agent of a lost member sends heartbeats again.
	HistoryBack HistoryReason = "Back"
	// HistoryCordoned: a user keeps new deliveries from the member.
	HistoryCordoned HistoryReason = "Cordoned"
	// HistoryUncordoned: the member gets new deliveries again.
	HistoryUncordoned HistoryReason = "Uncordoned"
	// HistoryDrained: the placements of a cordoned member have moved to other members.
	HistoryDrained HistoryReason = "Drained"
	// HistoryAgentUpdated: the agent has another version than before.
	HistoryAgentUpdated HistoryReason = "AgentUpdated"
	// HistoryKubernetesUpdated: the member has another version of Kubernetes than before.
	HistoryKubernetesUpdated HistoryReason = "KubernetesUpdated"
	// HistoryMoved: the agent uses another address of the hub.
	HistoryMoved HistoryReason = "Moved"
	// HistoryRevoked: a user has revoked the access of the member.
	HistoryRevoked HistoryReason = "Revoked"
	// HistoryRestored: a user has undone the revocation.
	HistoryRestored HistoryReason = "Restored"
	// HistoryQuarantined: the agent may only send heartbeats and reports.
	HistoryQuarantined HistoryReason = "Quarantined"
	// HistoryQuarantineEnded: the quarantine has ended.
	HistoryQuarantineEnded HistoryReason = "QuarantineEnded"
	// HistoryLeft: the agent has left the fleet.
	HistoryLeft HistoryReason = "Left"
)

// MaxHistory is the number of entries that the hub keeps of a member, apart from denied requests.
// These have one entry for each cause.
const MaxHistory = 20

// HistoryEntry is a change in the life of a member, or a series of changes of one kind within an
// hour. The hub writes it together with the status that shows the change. Denied requests of one
// cause share one entry.
type HistoryEntry struct {
	// time is the time when the hub noticed the change, or the first of several.
	// +required
	Time metav1.Time `json:"time"`
	// reason is the kind of the change, such as Joined, Lost or Back.
	// +required
	Reason HistoryReason `json:"reason"`
	// cause is the reason of a denied registration request, such as InvalidSignature or NotApproved.
	// Other changes have none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cause string `json:"cause,omitempty"`
	// message describes the change, or the last of several, in one sentence.
	// +optional
	Message limits.Line `json:"message,omitempty"`
	// count is the number of changes that this entry stands for; 0 means one.
	// +optional
	Count int32 `json:"count,omitempty"`
	// lastTime is the time when the hub noticed the last of several changes.
	// +optional
	LastTime *metav1.Time `json:"lastTime,omitempty"`
}

// Last returns the time of the last change of an entry.
func (e *HistoryEntry) Last() time.Time {
	if e.LastTime != nil {
		return e.LastTime.Time
	}
	return e.Time.Time
}

// Changes returns the number of changes of an entry.
func (e *HistoryEntry) Changes() int { return max(1, int(e.Count)) }
