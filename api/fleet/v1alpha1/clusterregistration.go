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

// ClusterRegistrationSpec is the request. The agent writes it once.
type ClusterRegistrationSpec struct {
	// clientID selects the Cluster with the same spec.clientID; if there is none, the hub creates one.
	// The hub denies a request with a clientID of more than 4096 characters.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxLength=8192
	ClientID string `json:"clientID,omitempty"`
	// clientRandom makes the name of the answer's Secret unguessable. Muster's agents append a dot and
	// the time of the request, in microseconds since 1970, so that spec.signature covers the time. The
	// hub grants a signed request once.
	// +optional
	// +nullable
	ClientRandom limits.Name `json:"clientRandom,omitempty"`
	// clusterLabels become the labels of a Cluster that this request creates.
	// +optional
	// +nullable
	ClusterLabels limits.Labels `json:"clusterLabels,omitempty"`
	// answerKey is the HPKE public key (RFC 9180, DHKEM X25519) for sealing the credential in
	// status.answer. Its private half never leaves the agent. Without a key, the hub answers with a
	// Secret, as upstream agents expect. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AnswerKey []byte `json:"answerKey,omitempty"`
	// agentKey is the permanent Ed25519 public key of the agent. The hub pins it to the Cluster. Later
	// requests with the same key come from the same cluster. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AgentKey []byte `json:"agentKey,omitempty"`
	// hubCAs lists the CA certificates that the agent accepts for the hub, as hexadecimal SHA-256
	// digests. With agentTLSMode strict it lists the CAs of the agent's settings, otherwise none. The
	// hub denies a request without its own CA in the list: the request is for another hub. A Muster
	// addition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	HubCAs []string `json:"hubCAs,omitempty"`
	// signature is made with agentKey. It covers the namespace, clientID, clientRandom, the label with
	// the token's name, answerKey and hubCAs. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Signature []byte `json:"signature,omitempty"`
	// requestedAt is the time of the request, by the agent's own clock. It orders two requests for one
	// cluster that were created in the same second. A Muster addition.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`
}

// RegistrationState is the state of a request.
type RegistrationState string

// The states of a ClusterRegistration.
const (
	// RegistrationWaiting: the hub prepares the member namespace, or cannot; the message gives the
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

// ReasonNotApproved means that a user denied the request. While the request exists, a user may
// still approve it, and the agent waits.
const ReasonNotApproved = "NotApproved"

// ClusterRegistrationStatus is the observed state of a ClusterRegistration. Only the hub writes it.
type ClusterRegistrationStatus struct {
	// clusterName is the name of the Cluster for this request. It is set before the grant.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// granted is true once the credential has been issued.
	// +optional
	Granted bool `json:"granted,omitempty"`
	// grantedAt is the time when the hub issued the credential, by its own clock. An hour later the
	// hub withdraws an unread answer. A Muster addition.
	// +optional
	GrantedAt *metav1.Time `json:"grantedAt,omitempty"`
	// deniedAt is the time when the hub or a user denied the request, by the hub's clock. A Muster
	// addition.
	// +optional
	DeniedAt *metav1.Time `json:"deniedAt,omitempty"`
	// firstSeenVersion is the metadata.resourceVersion of the request when the hub first saw it.
	// Creation times have a resolution of a second. Of two requests from one second, the one with the
	// greater version is newer. A Muster addition.
	// +optional
	FirstSeenVersion string `json:"firstSeenVersion,omitempty"`
	// state is the state of the request. A Muster addition.
	// +optional
	// +kubebuilder:validation:Enum=Waiting;Pending;Conflict;Denied;Granted
	State RegistrationState `json:"state,omitempty"`
	// reason is a stable CamelCase word for State. A Muster addition.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message gives the cause, and the next step. A Muster addition.
	// +optional
	Message string `json:"message,omitempty"`
	// answer is the credential, sealed to spec.answerKey. Only the requesting agent can open it.
	// Inside is a JSON document with the keys of the Secret for upstream agents. A Muster addition.
	// +optional
	Answer []byte `json:"answer,omitempty"`
	// droppedLabels lists the rejected labels of spec.clusterLabels, each as `key: why`. If there are
	// many, the last entry counts the rest. A Muster addition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=17
	DroppedLabels []string `json:"droppedLabels,omitempty"`
	// approvedReason is the reason why the request needed approval. Empty without an approval. A
	// Muster addition.
	// +optional
	ApprovedReason string `json:"approvedReason,omitempty"`
	// approvedGeneration is the metadata.generation of the request at its approval. Zero without an
	// approval. A Muster addition.
	// +optional
	ApprovedGeneration int64 `json:"approvedGeneration,omitempty"`
	// conditions: Attributed. It is False if the hub does not know the requester, and otherwise
	// absent. A Muster addition.
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
