package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterRegistration is the request of an agent to be a Cluster of its namespace, the workspace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterregistrations
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Cluster-Name",type=string,JSONPath=`.status.clusterName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
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
	// ClientID says which Cluster the agent wants to be: the one with the same spec.clientID, else a new one.
	// +optional
	// +nullable
	ClientID string `json:"clientID,omitempty"`
	// ClientRandom makes the name of the answer's Secret unguessable.
	// +optional
	// +nullable
	ClientRandom string `json:"clientRandom,omitempty"`
	// ClusterLabels become the labels of the Cluster if this request creates it.
	// +optional
	// +nullable
	ClusterLabels map[string]string `json:"clusterLabels,omitempty"`
	// AnswerKey is the HPKE public key (RFC 9180, DHKEM X25519) to which the hub seals the credential in
	// status.answer. Its private half never leaves the agent. An agent that sends none is answered with a
	// Secret, as upstream agents expect. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AnswerKey []byte `json:"answerKey,omitempty"`
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
	// RegistrationConflict: the request collides with another Cluster; a person has to resolve it.
	RegistrationConflict RegistrationState = "Conflict"
	// RegistrationDenied: final; the message says why and what to do.
	RegistrationDenied RegistrationState = "Denied"
	// RegistrationGranted: final; the credential has been issued.
	RegistrationGranted RegistrationState = "Granted"
)

// ClusterRegistrationStatus is written by the hub only.
type ClusterRegistrationStatus struct {
	// ClusterName is the Cluster that the request is, or will be, attached to.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// Granted is true once the credential has been issued.
	// +optional
	Granted bool `json:"granted,omitempty"`
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
