package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// AgentStatus is what is known of the agent of a Cluster.
type AgentStatus struct {
	// LastSeen is the time of a recent beat: written when the agent appears, is lost or returns, and in between at most
	// every five minutes. Upstream agents write it themselves.
	// +optional
	// +nullable
	LastSeen metav1.Time `json:"lastSeen,omitempty"`
	// Namespace of the agent downstream.
	// +optional
	// +nullable
	Namespace limits.Name `json:"namespace,omitempty"`
	// ReadyNodes is the number of ready nodes; written by upstream agents up to 0.9.
	// +optional
	ReadyNodes int `json:"readyNodes,omitempty"`
	// NonReadyNodes is the number of nodes that are not ready; written by upstream agents up to 0.9.
	// +optional
	NonReadyNodes int `json:"nonReadyNodes,omitempty"`
	// ReadyNodeNames are at most three names; written by upstream agents up to 0.9.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	ReadyNodeNames []limits.Name `json:"readyNodeNames,omitempty"`
	// NonReadyNodeNames are at most three names; written by upstream agents up to 0.9.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	NonReadyNodeNames []limits.Name `json:"nonReadyNodeNames,omitempty"`
	// Version of the agent.
	// +optional
	Version limits.Name `json:"version,omitempty"`
	// KubernetesVersion of the member. A Muster addition.
	// +optional
	KubernetesVersion limits.Name `json:"kubernetesVersion,omitempty"`
	// ClockSkewSeconds is by how many seconds the member's clock is ahead of the hub's, negative if it is behind, as recent beats
	// showed it. It is written with the rest of the status, or when it moved by more than 30 s. Nothing is judged by it. Not set of
	// upstream agents. A Muster addition.
	// +optional
	ClockSkewSeconds *int64 `json:"clockSkewSeconds,omitempty"`
	// Account is the UID of the ServiceAccount that the hub made for a Rancher Fleet agent and with whose credential an agent of Muster
	// goes on. That agent writes it when it takes over; a beat of the Rancher Fleet agent removes it. Empty if there is no such
	// agent. A Muster addition.
	// +optional
	Account limits.Name `json:"account,omitempty"`
}

// CredentialStatus is what is known of an agent's credential.
type CredentialStatus struct {
	// Kind is native (it expires, and the hub renews it) or legacy (it was made for an agent of Rancher Fleet, and nobody renews it).
	// +optional
	Kind string `json:"kind,omitempty"`
	// Expires is when the newest credential that the agent is known to use ends; absent if never.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// Key is how the fingerprint of the agent's key begins; the annotation muster/agent-key has all of it. Empty if the agent has none.
	// +optional
	Key string `json:"key,omitempty"`
	// AccountUID is the UID of the account that the credential is of.
	// +optional
	AccountUID string `json:"accountUID,omitempty"`
	// Sequence is that of the newest credential of the account that was in use; zero for the one of the registration.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// Superseded is the sequence of an older credential that was in use after a newer one had been: there is a copy of the cluster, or the cluster was
	// restored from a backup. Absent if none was.
	// +optional
	Superseded *int64 `json:"superseded,omitempty"`
}
