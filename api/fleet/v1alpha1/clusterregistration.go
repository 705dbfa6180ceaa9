package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterRegistration is the request of an agent to be a Cluster of its namespace, the workspace.
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
	// ClientID says which Cluster the agent wants to be: the one with the same spec.clientID, else a new one. A request with more than 4096
	// characters is denied.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxLength=8192
	ClientID string `json:"clientID,omitempty"`
	// ClientRandom makes the name of the answer's Secret unguessable. Agents of Muster append the time at which they ask, so that spec.signature covers
	// it, as a dot and the microseconds since 1970: a signed request counts once.
	// +optional
	// +nullable
	ClientRandom limits.Name `json:"clientRandom,omitempty"`
	// ClusterLabels become the labels of the Cluster if this request creates it.
	// +optional
	// +nullable
	ClusterLabels limits.Labels `json:"clusterLabels,omitempty"`
	// AnswerKey is the HPKE public key (RFC 9180, DHKEM X25519) to which the hub seals the credential in
	// status.answer. Its private half never leaves the agent. An agent that sends none is answered with a
	// Secret, as upstream agents expect. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AnswerKey []byte `json:"answerKey,omitempty"`
	// AgentKey is the Ed25519 public key of the agent, which it keeps for good: the hub pins the key to the Cluster, and the same key is the same
	// cluster. An agent without one cannot prove that. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AgentKey []byte `json:"agentKey,omitempty"`
	// HubCAs are the SHA-256 digests, in hexadecimal form, of the only CA certificates by which the agent knows the hub: with agentTLSMode strict
	// those that it was given, else none. A request that names none of the hub's is denied, because it was made for another hub. A Muster addition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	HubCAs []string `json:"hubCAs,omitempty"`
	// Signature by AgentKey covers the namespace, clientID, clientRandom, the label with the token's name, answerKey and hubCAs. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Signature []byte `json:"signature,omitempty"`
	// RequestedAt is when the agent asked, by its own clock. Of two requests for one cluster that were created in the same second, the
	// later one is the newer. A Muster addition.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`
}

// RegistrationState says where a request stands.
type RegistrationState string

// The states of a ClusterRegistration.
const (
	// RegistrationWaiting: the hub is preparing the member namespace, or cannot, and says why.
	RegistrationWaiting RegistrationState = "Waiting"
	// RegistrationPending: somebody has to approve the request.
	RegistrationPending RegistrationState = "Pending"
	// RegistrationConflict: the request collides with another Cluster; a person has to resolve it.
	RegistrationConflict RegistrationState = "Conflict"
	// RegistrationDenied: final, but for the reason NotApproved; the message says why and what to do.
	RegistrationDenied RegistrationState = "Denied"
	// RegistrationGranted: final; the credential has been issued.
	RegistrationGranted RegistrationState = "Granted"
)

// ReasonNotApproved is that of a request which somebody has denied: it may be approved after all as long as it is there, and its agent waits for that.
const ReasonNotApproved = "NotApproved"

// ClusterRegistrationStatus is written by the hub only.
type ClusterRegistrationStatus struct {
	// ClusterName is the Cluster that the request is, or will be, attached to.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// Granted is true once the credential has been issued.
	// +optional
	Granted bool `json:"granted,omitempty"`
	// GrantedAt is when the credential was issued, by the clock of the hub: an answer that nobody fetches is withdrawn an hour later. A Muster addition.
	// +optional
	GrantedAt *metav1.Time `json:"grantedAt,omitempty"`
	// FirstSeenVersion is the metadata.resourceVersion at which the hub first saw the request: creation times have a resolution of a second, and of two
	// requests of one second the one with the greater version is the newer. A Muster addition.
	// +optional
	FirstSeenVersion string `json:"firstSeenVersion,omitempty"`
	// State says where the request stands. A Muster addition.
	// +optional
	// +kubebuilder:validation:Enum=Waiting;Pending;Conflict;Denied;Granted
	State RegistrationState `json:"state,omitempty"`
	// Reason is a stable CamelCase word for State. A Muster addition.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says why, and what to do next. A Muster addition.
	// +optional
	Message string `json:"message,omitempty"`
	// Answer is the credential, sealed to spec.answerKey: a JSON document with the keys of the Secret that
	// upstream agents get. Worthless to anybody but the agent that asked. A Muster addition.
	// +optional
	Answer []byte `json:"answer,omitempty"`
	// DroppedLabels are those of spec.clusterLabels that the Cluster did not get, each as `key: why`; if there are many, the last entry counts
	// the rest. A Muster addition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=17
	DroppedLabels []string `json:"droppedLabels,omitempty"`
	// ApprovedReason is the reason for which the request was Pending when somebody approved it; empty if nobody has. A Muster addition.
	// +optional
	ApprovedReason string `json:"approvedReason,omitempty"`
	// ApprovedGeneration is the metadata.generation of the request then; zero if nobody has. A Muster addition.
	// +optional
	ApprovedGeneration int64 `json:"approvedGeneration,omitempty"`
	// Conditions has one at most, Attributed, which is False if the hub does not know who made the request, and else absent. A Muster addition.
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
