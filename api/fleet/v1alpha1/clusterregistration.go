package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterRegistration is an agent's request to become a Cluster of its namespace, the workspace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterregistrations
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Cluster-Name",type=string,JSONPath=`.status.clusterName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Labels",type=string,priority=1,JSONPath=`.spec.clusterLabels`
type ClusterRegistration struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ClusterRegistrationSpec `json:"spec,omitempty"`
	// +optional
	Status ClusterRegistrationStatus `json:"status,omitempty"`
}

// ClusterRegistrationSpec is written once, by the agent.
type ClusterRegistrationSpec struct {
	// ClientID selects the Cluster that the agent requests to be: the one with the same spec.clientID,
	// else a new one. The hub denies a request with more than 4096 characters.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxLength=8192
	ClientID string `json:"clientID,omitempty"`
	// ClientRandom makes the name of the answer's Secret unguessable. Agents of Muster's append a dot
	// and the time of the request, in microseconds since 1970, so that spec.signature covers it. A
	// signed request counts once.
	// +optional
	// +nullable
	ClientRandom limits.Name `json:"clientRandom,omitempty"`
	// ClusterLabels become the labels of the Cluster if this request creates it.
	// +optional
	// +nullable
	ClusterLabels limits.Labels `json:"clusterLabels,omitempty"`
	// AnswerKey is the HPKE public key (RFC 9180, DHKEM X25519) for sealing the credential in
	// status.answer. Its private half never leaves the agent. Without a key, the hub answers with a
	// Secret, as upstream agents expect. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AnswerKey []byte `json:"answerKey,omitempty"`
	// AgentKey is the permanent Ed25519 public key of the agent. The hub pins the key to the Cluster,
	// and the same key proves the same cluster. An agent without a key has no such proof. A Muster
	// addition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AgentKey []byte `json:"agentKey,omitempty"`
	// HubCAs lists the SHA-256 digests, in hexadecimal form, of the only CA certificates that the
	// agent accepts for the hub. With agentTLSMode strict it lists the CAs of the agent's settings,
	// else none. The hub denies a request with other CAs only, because it is for another hub. A Muster
	// addition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	HubCAs []string `json:"hubCAs,omitempty"`
	// Signature by AgentKey covers the namespace, clientID, clientRandom, the label with the token's
	// name, answerKey and hubCAs. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Signature []byte `json:"signature,omitempty"`
	// RequestedAt is the time of the request, by the agent's own clock. Of two requests for one
	// cluster created in the same second, the later one is the newer. A Muster addition.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`
}

// RegistrationState is the state of a request.
type RegistrationState string

// The states of a ClusterRegistration.
const (
	// RegistrationWaiting: the hub is preparing the member namespace, or cannot; the message gives the
	// cause.
	RegistrationWaiting RegistrationState = "Waiting"
	// RegistrationPending: the request needs approval.
	RegistrationPending RegistrationState = "Pending"
	// RegistrationConflict: the request collides with another Cluster; a user must resolve it.
	RegistrationConflict RegistrationState = "Conflict"
	// RegistrationDenied: final, except for the reason NotApproved; the message gives the cause and
	// the remedy.
	RegistrationDenied RegistrationState = "Denied"
	// RegistrationGranted: final; the credential has been issued.
	RegistrationGranted RegistrationState = "Granted"
)

// ReasonNotApproved means: a user denied the request. Another user may still approve it while it
// exists, and the agent waits for that.
const ReasonNotApproved = "NotApproved"

// ClusterRegistrationStatus is written by the hub only.
type ClusterRegistrationStatus struct {
	// ClusterName is the Cluster of the request, before and after the grant.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// Granted is true once the credential has been issued.
	// +optional
	Granted bool `json:"granted,omitempty"`
	// GrantedAt is the time of the credential's issue, by the clock of the hub. An hour later the hub
	// withdraws an unread answer. A Muster addition.
	// +optional
	GrantedAt *metav1.Time `json:"grantedAt,omitempty"`
	// FirstSeenVersion is the metadata.resourceVersion of the request when the hub first saw it.
	// Creation times have a resolution of a second. Of two requests of one second, the greater version
	// is the newer. A Muster addition.
	// +optional
	FirstSeenVersion string `json:"firstSeenVersion,omitempty"`
	// State is the state of the request. A Muster addition.
	// +optional
	// +kubebuilder:validation:Enum=Waiting;Pending;Conflict;Denied;Granted
	State RegistrationState `json:"state,omitempty"`
	// Reason is a stable CamelCase word for State. A Muster addition.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message gives the cause, and the next step. A Muster addition.
	// +optional
	Message string `json:"message,omitempty"`
	// Answer is the credential, sealed to spec.answerKey: a JSON document with the keys of the Secret
	// for upstream agents. It is useless to all but the requesting agent. A Muster addition.
	// +optional
	Answer []byte `json:"answer,omitempty"`
	// DroppedLabels lists the labels in spec.clusterLabels that the Cluster did not get, each as `key:
	// why`. If there are many, the last entry counts the rest. A Muster addition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=17
	DroppedLabels []string `json:"droppedLabels,omitempty"`
	// ApprovedReason is the reason of the state Pending before the approval; empty without approval. A
	// Muster addition.
	// +optional
	ApprovedReason string `json:"approvedReason,omitempty"`
	// ApprovedGeneration is the metadata.generation of the request at its approval; zero without
	// approval. A Muster addition.
	// +optional
	ApprovedGeneration int64 `json:"approvedGeneration,omitempty"`
	// Conditions has at most Attributed, which is False if the requester is unknown, and else absent.
	// A Muster addition.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// ClusterRegistrationList is a list of ClusterRegistrations.
//
// +kubebuilder:object:root=true
type ClusterRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterRegistration `json:"items"`
}
