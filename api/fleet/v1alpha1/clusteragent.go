package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// AgentStatus is the status of a Cluster's agent.
type AgentStatus struct {
	// LastSeen is the time of a recent heartbeat. The hub writes it when the agent appears, is Lost or
	// returns, and in between at most every five minutes. Upstream agents write it themselves.
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
	// ReadyNodeNames lists at most three names; written by upstream agents up to 0.9.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	ReadyNodeNames []limits.Name `json:"readyNodeNames,omitempty"`
	// NonReadyNodeNames lists at most three names; written by upstream agents up to 0.9.
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
	// ClockSkewSeconds is the lead of the member's clock over the hub's in seconds, negative if it is
	// behind, from recent heartbeats. The hub writes it with the rest of the status, or after a change
	// of more than 30 s. No decision depends on it. Not set for upstream agents. A Muster addition.
	// +optional
	ClockSkewSeconds *int64 `json:"clockSkewSeconds,omitempty"`
	// Account is the UID of the ServiceAccount of a Rancher Fleet agent whose credential an agent of
	// Muster's uses. The latter writes it when it takes over; a heartbeat of the Rancher Fleet agent
	// removes it. Empty if there is no such agent. A Muster addition.
	// +optional
	Account limits.Name `json:"account,omitempty"`
}

// CredentialStatus is the status of an agent's credential.
type CredentialStatus struct {
	// Kind is native (it expires, and the hub renews it) or legacy (issued to an agent of Rancher
	// Fleet, without renewal).
	// +optional
	Kind string `json:"kind,omitempty"`
	// Expires is the expiry of the newest credential known to be in use; absent if it never expires.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// Key is the beginning of the fingerprint of the agent's key; the annotation muster/agent-key has
	// all of it. Empty if the agent has none.
	// +optional
	Key string `json:"key,omitempty"`
	// AccountUID is the UID of the credential's account.
	// +optional
	AccountUID string `json:"accountUID,omitempty"`
	// Sequence is the number of the account's newest credential that was in use; zero for the
	// registration's credential.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// Superseded is the sequence of an older credential used after a newer one: the cluster was
	// copied, or restored from a backup. Absent if there was none.
	// +optional
	Superseded *int64 `json:"superseded,omitempty"`
}
