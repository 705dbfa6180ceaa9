package v1beta1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemberCluster is a member of the fleet registered by name by an administrator, cluster-scoped on
// the hub. Delete it to let the member leave.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=memberclusters,scope=Cluster,shortName=cluster,categories={fleet,fleet-cluster}
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.conditions[?(@.type=="Joined")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Member-Agent-Last-Seen",type=date,JSONPath=`.status.agentStatus[?(@.type=="MemberAgent")].lastReceivedHeartbeat`
// +kubebuilder:printcolumn:name="Node-Count",type=string,JSONPath=`.status.properties.kubernetes-fleet\.io/node-count.value`
// +kubebuilder:printcolumn:name="Available-CPU",type=string,JSONPath=`.status.resourceUsage.available.cpu`
// +kubebuilder:printcolumn:name="Available-Memory",type=string,JSONPath=`.status.resourceUsage.available.memory`
// +kubebuilder:printcolumn:name="Allocatable-CPU",type=string,priority=1,JSONPath=`.status.resourceUsage.allocatable.cpu`
// +kubebuilder:printcolumn:name="Allocatable-Memory",type=string,priority=1,JSONPath=`.status.resourceUsage.allocatable.memory`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 50",message="metadata.name may have at most 50 characters, because the member's namespace is fleet-member-<name>"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name may hold only lower case letters, digits and dashes, because the member's namespace is fleet-member-<name>"
type MemberCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec MemberClusterSpec `json:"spec"`
	// +optional
	Status MemberClusterStatus `json:"status,omitempty"`
}

// MemberClusterSpec is written by administrators.
type MemberClusterSpec struct {
	// Identity is the identity of the member's agent on the hub: a ServiceAccount or a User. It gets
	// access to the member namespace; a previous identity loses it at once.
	// +required
	Identity rbacv1.Subject `json:"identity"`
	// HeartbeatPeriodSeconds is the period of the agent's heartbeats. A member is Lost after three
	// missing heartbeats, but not before 30 s.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`
	// Taints exclude the member from placements without a matching toleration.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.key == b.key && (has(a.value) ? a.value : '') == (has(b.value) ? b.value : '') && a.effect == b.effect))",message="two taints have the same key, value and effect"
	Taints []Taint `json:"taints,omitempty"`
	// DeleteOptions of the member.
	// +optional
	DeleteOptions *DeleteOptions `json:"deleteOptions,omitempty"`
}

// Taint excludes a member from placements.
type Taint struct {
	// Key is a qualified name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Key string `json:"key"`
	// Value is a label value. With UntilTrue the hub removes the taint once the condition of the
	// MemberCluster whose type is the key is True. That is a Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	Value string `json:"value,omitempty"`
	// Effect is NoSchedule: objects placed already stay.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule
	Effect string `json:"effect"`
}

// DeleteOptions of a MemberCluster.
type DeleteOptions struct {
	// ValidationMode is accepted for compatibility; Muster has no networking objects that could forbid
	// a deletion.
	// +optional
	// +kubebuilder:default=Strict
	// +kubebuilder:validation:Enum=Skip;Strict
	ValidationMode string `json:"validationMode,omitempty"`
}

// MemberClusterStatus is written by the hub only.
type MemberClusterStatus struct {
	// Conditions: the hub's, such as ReadyToJoin, Joined and Healthy, and the property provider's from
	// the member's report.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=40
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Properties of the member by name, such as kubernetes-fleet.io/node-count.
	// +optional
	Properties map[string]PropertyValue `json:"properties,omitempty"`
	// ResourceUsage of the member.
	// +optional
	ResourceUsage ResourceUsage `json:"resourceUsage,omitempty"`
	// Namespaces of the member and their owning Works, at most 200; empty if the agent does not
	// collect them.
	// +optional
	Namespaces map[string]string `json:"namespaces,omitempty"`
	// AgentStatus has an entry per agent.
	// +optional
	// +listType=map
	// +listMapKey=type
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`
	// ClockSkewSeconds is the lead of the member's clock over the hub's in seconds, negative if it is
	// behind, from recent heartbeats. The hub writes it with the rest of the status, or after a change
	// of more than 30 s. No decision depends on it. A Muster addition.
	// +optional
	ClockSkewSeconds *int64 `json:"clockSkewSeconds,omitempty"`
	// AgentVersion is the version of Muster's agent; empty for KubeFleet's. A Muster addition.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`
	// Credential is the status of the hub's credential that the agent got in exchange for the token of
	// spec.identity; absent if it uses none. A Muster addition.
	// +optional
	Credential *CredentialStatus `json:"credential,omitempty"`
	// History lists the last changes in the life of the member: joined, lost, back, cordoned, updated,
	// revoked. Only the hub writes it. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxItems=40
	History []HistoryEntry `json:"history,omitempty"`
}

// CredentialStatus is the status of an agent's credential.
type CredentialStatus struct {
	// Kind is native: the credential expires, and the hub renews it.
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
	// Sequence is the number of the account's newest credential that was in use.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// Superseded is the sequence of an older credential used after a newer one: the cluster was
	// copied, or restored from a backup. Absent if there was none.
	// +optional
	Superseded *int64 `json:"superseded,omitempty"`
}

// MemberClusterList is a list of MemberClusters.
//
// +kubebuilder:object:root=true
type MemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemberCluster `json:"items"`
}
