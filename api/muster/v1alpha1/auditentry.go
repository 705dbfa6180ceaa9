package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/api/limits"
)

// AuditReason says what kind of fact an AuditEntry is about.
//
// +kubebuilder:validation:Enum=Granted;Displaced;Approved;Denied;Revoked;RenewalGap
type AuditReason string

// The values of AuditReason.
const (
	// AuditGranted: a request was granted, so that its agent has the identity of the Cluster; or the
	// identity of a MemberCluster was given its rights.
	AuditGranted AuditReason = "Granted"
	// AuditDisplaced: another agent, with another key or none, took the place of the one that had the
	// identity; or a MemberCluster was given another identity.
	AuditDisplaced AuditReason = "Displaced"
	// AuditApproved: somebody approved a request.
	AuditApproved AuditReason = "Approved"
	// AuditDenied: somebody denied a request. What the hub refuses by itself has no entry.
	AuditDenied AuditReason = "Denied"
	// AuditRevoked: somebody took an identity away.
	AuditRevoked AuditReason = "Revoked"
	// AuditRenewalGap: an agent whose credential had run out came back by its key.
	AuditRenewalGap AuditReason = "RenewalGap"
)

// AuditEntry is one fact about who was let into the fleet, or put out of it. The hub writes it
// once, and deletes it by age and number; nobody changes it. Entries about Clusters are in their
// workspace, those about MemberClusters in the hub's system namespace.
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

// AuditEntrySpec is written by the hub, once. What the hub does not know is left out.
type AuditEntrySpec struct {
	// Time is when the hub acted or decided, by its clock.
	// +required
	Time metav1.Time `json:"time"`
	// Reason is the kind of the fact.
	// +required
	Reason AuditReason `json:"reason"`
	// Object is the record that the fact is about. A Cluster that does not exist yet has no UID.
	// +required
	Object AuditObject `json:"object"`
	// Identity is the spec.identity of a MemberCluster that the fact is about: its kind, its namespace
	// if it has one, and its name.
	// +optional
	Identity limits.Line `json:"identity,omitempty"`
	// Request is the ClusterRegistration by which the fact came about.
	// +optional
	Request *AuditObject `json:"request,omitempty"`
	// Who is the user who asked or decided, as the API server attributed the request, the approval,
	// the revocation or the identity to him; empty if it did not, which the message says.
	// +optional
	Who limits.Line `json:"who,omitempty"`
	// Token is the name of the ClusterRegistrationToken of the request.
	// +optional
	Token limits.Name `json:"token,omitempty"`
	// ClientID is the one of the request.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ClientID string `json:"clientID,omitempty"`
	// Key is the fingerprint of the agent's key; empty for agents without one.
	// +optional
	Key limits.Name `json:"key,omitempty"`
	// Address is the network address that the agent asked from; empty if nothing has
	// told it to the hub.
	// +optional
	Address limits.Line `json:"address,omitempty"`
	// Displaced is the identity that ended; only of what ends one.
	// +optional
	Displaced *DisplacedIdentity `json:"displaced,omitempty"`
	// Message says it in one sentence.
	// +required
	Message limits.Line `json:"message"`
}

// AuditObject names an object, which may be gone.
type AuditObject struct {
	// Kind of the object.
	// +required
	Kind limits.Name `json:"kind"`
	// Namespace of the object; empty for one that has none.
	// +optional
	Namespace limits.Name `json:"namespace,omitempty"`
	// Name of the object.
	// +required
	Name limits.Name `json:"name"`
	// UID of the object.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// DisplacedIdentity is what an agent had until it was displaced.
type DisplacedIdentity struct {
	// Identity is the spec.identity that a MemberCluster had: its kind, its namespace if it
	// has one, and its name.
	// +optional
	Identity limits.Line `json:"identity,omitempty"`
	// AccountUID is the UID of the ServiceAccount, with which all of its credentials ended.
	// +optional
	AccountUID types.UID `json:"accountUID,omitempty"`
	// Request is the name of the ClusterRegistration that the account was made for.
	// +optional
	Request limits.Name `json:"request,omitempty"`
	// RequestUID is its UID.
	// +optional
	RequestUID types.UID `json:"requestUID,omitempty"`
	// Key is the fingerprint that was pinned to the Cluster; empty for agents without a key.
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
