package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/api/limits"
)

// AuditReason is the kind of event in an AuditEntry.
//
// +kubebuilder:validation:Enum=Granted;Displaced;Approved;Denied;Revoked;RenewalGap;Quarantined;QuarantineEnded;Removed
type AuditReason string

// The values of AuditReason.
const (
	// AuditGranted: the hub granted a request and its agent has the identity of the Cluster; or the
	// identity of a MemberCluster got its rights.
	AuditGranted AuditReason = "Granted"
	// AuditDisplaced: another agent, with another key or none, replaced the agent with the identity;
	// or a MemberCluster got another identity.
	AuditDisplaced AuditReason = "Displaced"
	// AuditApproved: a user approved a request.
	AuditApproved AuditReason = "Approved"
	// AuditDenied: a user denied a request. A denial by the hub itself has no entry.
	AuditDenied AuditReason = "Denied"
	// AuditRevoked: a user revoked an identity.
	AuditRevoked AuditReason = "Revoked"
	// AuditRenewalGap: an agent with an expired credential rejoined by its key.
	AuditRenewalGap AuditReason = "RenewalGap"
	// AuditQuarantined: a user quarantined a member, and it lost all rights except its heartbeat and
	// its report.
	AuditQuarantined AuditReason = "Quarantined"
	// AuditQuarantineEnded: a user ended a quarantine.
	AuditQuarantineEnded AuditReason = "QuarantineEnded"
	// AuditRemoved: the hub removed a member that sent no heartbeats, as its settings say.
	AuditRemoved AuditReason = "Removed"
)

// AuditEntry is one event of access to the fleet: access was granted, refused or ended. The hub
// writes an entry once, never changes it, and deletes the oldest ones by age and number. Entries
// about Clusters are in their workspace, entries about MemberClusters in the hub's system
// namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=auditentries,scope=Namespaced,categories=muster
// +kubebuilder:selectablefield:JSONPath=`.spec.reason`
// +kubebuilder:selectablefield:JSONPath=`.spec.object.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.token`
// +kubebuilder:printcolumn:name="Time",type=date,JSONPath=`.spec.time`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Object",type=string,JSONPath=`.spec.object.name`
// +kubebuilder:printcolumn:name="Who",type=string,JSONPath=`.spec.who`
// +kubebuilder:printcolumn:name="Token",type=string,JSONPath=`.spec.token`
// +kubebuilder:printcolumn:name="Key",type=string,JSONPath=`.spec.key`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.spec.message`
type AuditEntry struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an AuditEntry is never changed"
	Spec AuditEntrySpec `json:"spec"`
}

// AuditEntrySpec describes the event. The hub writes it once, and leaves out unknown fields.
type AuditEntrySpec struct {
	// time is the time of the event, by the hub's clock.
	// +required
	Time metav1.Time `json:"time"`
	// reason is the kind of the event.
	// +required
	Reason AuditReason `json:"reason"`
	// object is the Cluster or MemberCluster that the event is about. A Cluster that does not exist
	// yet has no UID.
	// +required
	Object AuditObject `json:"object"`
	// identity is the spec.identity of the MemberCluster: its kind, its namespace if it has one, and
	// its name.
	// +optional
	Identity limits.Line `json:"identity,omitempty"`
	// request is the ClusterRegistration that led to the event.
	// +optional
	Request *AuditObject `json:"request,omitempty"`
	// who is the user behind the event, as attributed by the API server: the author of the request,
	// the approval, the revocation or the identity. Empty if the author is unknown; the message then
	// gives the cause.
	// +optional
	Who limits.Line `json:"who,omitempty"`
	// token is the name of the ClusterRegistrationToken of the request.
	// +optional
	Token limits.Name `json:"token,omitempty"`
	// clientID is the client ID of the request.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ClientID string `json:"clientID,omitempty"`
	// key is the fingerprint of the agent's key; empty for agents without one.
	// +optional
	Key limits.Name `json:"key,omitempty"`
	// address is the network address of the requesting agent; empty if unknown to the hub.
	// +optional
	Address limits.Line `json:"address,omitempty"`
	// displaced is the identity that lost its access. Empty if none did.
	// +optional
	Displaced *DisplacedIdentity `json:"displaced,omitempty"`
	// message describes the event in one sentence.
	// +required
	Message limits.Line `json:"message"`
}

// AuditObject names an object. The object may be gone.
type AuditObject struct {
	// kind is the kind of the object.
	// +required
	Kind limits.Name `json:"kind"`
	// namespace is the namespace of the object; empty for a cluster-scoped object.
	// +optional
	Namespace limits.Name `json:"namespace,omitempty"`
	// name is the name of the object.
	// +required
	Name limits.Name `json:"name"`
	// uid is the UID of the object.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// DisplacedIdentity is the former identity of a displaced agent.
type DisplacedIdentity struct {
	// identity is the former spec.identity of a MemberCluster: its kind, its namespace if it has one,
	// and its name.
	// +optional
	Identity limits.Line `json:"identity,omitempty"`
	// accountUID is the UID of the deleted ServiceAccount. All of its credentials ended with it.
	// +optional
	AccountUID types.UID `json:"accountUID,omitempty"`
	// request is the name of the account's ClusterRegistration.
	// +optional
	Request limits.Name `json:"request,omitempty"`
	// requestUID is the UID of the request.
	// +optional
	RequestUID types.UID `json:"requestUID,omitempty"`
	// key is the fingerprint formerly pinned to the Cluster. Empty for agents without a key.
	// +optional
	Key limits.Name `json:"key,omitempty"`
}

// AuditEntryList is a list of AuditEntries.
//
// +kubebuilder:object:root=true
type AuditEntryList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AuditEntry `json:"items"`
}
