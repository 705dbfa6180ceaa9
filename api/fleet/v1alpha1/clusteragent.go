package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// AgentStatus is the status of a Cluster's agent.
type AgentStatus struct {
	// lastSeen is the time of a recent heartbeat. The hub writes it when the agent appears, is Lost or
	// returns, and otherwise at most every five minutes. Upstream agents write it themselves.
	// +optional
	// +nullable
	LastSeen metav1.Time `json:"lastSeen,omitempty"`
	// namespace is the namespace of the agent on the member.
	// +optional
	// +nullable
	Namespace limits.Name `json:"namespace,omitempty"`
	// readyNodes is the number of ready nodes; written by upstream agents up to 0.9.
	// +optional
	ReadyNodes int `json:"readyNodes,omitempty"`
	// nonReadyNodes is the number of nodes that are not ready; written by upstream agents up to 0.9.
	// +optional
	NonReadyNodes int `json:"nonReadyNodes,omitempty"`
	// readyNodeNames lists at most three names; written by upstream agents up to 0.9.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	ReadyNodeNames []limits.Name `json:"readyNodeNames,omitempty"`
	// nonReadyNodeNames lists at most three names; written by upstream agents up to 0.9.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=128
	NonReadyNodeNames []limits.Name `json:"nonReadyNodeNames,omitempty"`
	// version is the version of the agent.
	// +optional
	Version limits.Name `json:"version,omitempty"`
	// kubernetesVersion is the Kubernetes version of the member. A Muster addition.
	// +optional
	KubernetesVersion limits.Name `json:"kubernetesVersion,omitempty"`
	// clockSkewSeconds is the difference between the member's clock and the hub's, from recent
	// heartbeats. It is negative if the member's clock is slow. The hub writes it with the rest of the
	// status, or after a change of more than 30 s. No decision depends on it. Not set for upstream
	// agents. A Muster addition.
	// +optional
	ClockSkewSeconds *int64 `json:"clockSkewSeconds,omitempty"`
	// account is set while Muster's agent uses the credential of a Rancher Fleet agent. It is the UID
	// of the ServiceAccount of that credential. Muster's agent writes it at the takeover; a heartbeat
	// of the Rancher Fleet agent removes it. A Muster addition.
	// +optional
	Account limits.Name `json:"account,omitempty"`
}

// CredentialStatus is the status of an agent's credential.
type CredentialStatus struct {
	// kind is native (the credential expires, and the hub renews it before) or legacy (issued to an
	// agent of Rancher Fleet, without renewal).
	// +optional
	Kind string `json:"kind,omitempty"`
	// expires is the expiry of the newest credential known to be in use; absent if it never expires.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// key is the beginning of the fingerprint of the agent's key. The annotation muster/agent-key has
	// the whole fingerprint. Empty if the agent has no key.
	// +optional
	Key string `json:"key,omitempty"`
	// accountUID is the UID of the credential's account.
	// +optional
	AccountUID string `json:"accountUID,omitempty"`
	// sequence is the number of the newest credential that the agent has used; zero for the
	// registration's credential.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// superseded is the sequence of an older credential that was used after a newer one: the cluster
	// was copied, or restored from a backup. Absent if none was.
	// +optional
	Superseded *int64 `json:"superseded,omitempty"`
}

// AgentSchedulingCustomization sets the scheduling of the agent on the member.
type AgentSchedulingCustomization struct {
	// priorityClass is the PriorityClass to create for the agent.
	// +optional
	PriorityClass *PriorityClassSpec `json:"priorityClass,omitempty"`
	// podDisruptionBudget is the PodDisruptionBudget to create for the agent.
	// +optional
	PodDisruptionBudget *PodDisruptionBudgetSpec `json:"podDisruptionBudget,omitempty"`
}

// PriorityClassSpec describes a PriorityClass.
type PriorityClassSpec struct {
	// value is the priority as a number.
	// +optional
	Value int `json:"value,omitempty"`
	// preemptionPolicy is PreemptLowerPriority or Never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=63
	PreemptionPolicy *corev1.PreemptionPolicy `json:"preemptionPolicy,omitempty"`
}

// PodDisruptionBudgetSpec describes a PodDisruptionBudget. Set one of its two fields.
type PodDisruptionBudgetSpec struct {
	// minAvailable is a number or a percentage.
	// +optional
	MinAvailable limits.Name `json:"minAvailable,omitempty"`
	// maxUnavailable is a number or a percentage.
	// +optional
	MaxUnavailable limits.Name `json:"maxUnavailable,omitempty"`
}
