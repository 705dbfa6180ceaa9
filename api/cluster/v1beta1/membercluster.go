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

// MemberClusterSpec is the desired state of a MemberCluster. Administrators write it.
type MemberClusterSpec struct {
	// identity is the account of the member's agent on the hub: a ServiceAccount or a User. The hub
	// grants it access to the member namespace, and ends the access of the previous identity at once.
	// +required
	Identity rbacv1.Subject `json:"identity"`
	// heartbeatPeriodSeconds is the period of the agent's heartbeats. A member that misses three
	// heartbeats is Lost, but not before 30 s.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`
	// taints exclude the member from placements without a matching toleration.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.key == b.key && (has(a.value) ? a.value : '') == (has(b.value) ? b.value : '') && a.effect == b.effect))",message="two taints have the same key, value and effect"
	Taints []Taint `json:"taints,omitempty"`
	// deleteOptions are options for the deletion of the MemberCluster.
	// +optional
	DeleteOptions *DeleteOptions `json:"deleteOptions,omitempty"`
}

// Taint excludes a member from placements.
type Taint struct {
	// key is a qualified name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Key string `json:"key"`
	// value is a label value. With UntilTrue, the key is the type of a condition: the hub removes the
	// taint as soon as that condition is True. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	Value string `json:"value,omitempty"`
	// effect is NoSchedule: the member gets no new placements, and keeps the ones it has.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule
	Effect string `json:"effect"`
}

// DeleteOptions of a MemberCluster.
type DeleteOptions struct {
	// validationMode is the treatment of services that the member exports through KubeFleet's
	// networking agents. With Strict, a deleted MemberCluster leaves only after the last
	// InternalServiceExport in its member namespace is gone. With Skip, it leaves at once. Without
	// deleteOptions, Strict applies.
	// +optional
	// +kubebuilder:default=Strict
	// +kubebuilder:validation:Enum=Skip;Strict
	ValidationMode string `json:"validationMode,omitempty"`
}

// MemberClusterStatus is the observed state of a MemberCluster. Only the hub writes it.
type MemberClusterStatus struct {
	// conditions: ReadyToJoin, Joined, Healthy and others by the hub, and a copy of the conditions of
	// the member's property provider.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=40
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// properties are the properties of the member by name, such as kubernetes-fleet.io/node-count.
	// +optional
	Properties map[string]PropertyValue `json:"properties,omitempty"`
	// resourceUsage is the capacity of the member, and the part of it that is free.
	// +optional
	ResourceUsage ResourceUsage `json:"resourceUsage,omitempty"`
	// namespaces maps the member's namespaces to their owning Works. At most 200; empty if the agent
	// does not collect them.
	// +optional
	Namespaces map[string]string `json:"namespaces,omitempty"`
	// agentStatus has an entry per agent.
	// +optional
	// +listType=map
	// +listMapKey=type
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`
	// clockSkewSeconds is the difference between the member's clock and the hub's, from recent
	// heartbeats. It is negative if the member's clock is slow. The hub writes it with the rest of the
	// status, or after a change of more than 30 s. No decision depends on it. A Muster addition.
	// +optional
	ClockSkewSeconds *int64 `json:"clockSkewSeconds,omitempty"`
	// agentVersion is the version of Muster's agent; empty for KubeFleet's. A Muster addition.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`
	// credential is the status of the credential that the hub issued in exchange for the token of
	// spec.identity. Absent if the agent uses none. A Muster addition.
	// +optional
	Credential *CredentialStatus `json:"credential,omitempty"`
	// history lists the last events in the life of the member, such as Joined, Lost, Cordoned or
	// Revoked. Only the hub writes it. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxItems=40
	History []HistoryEntry `json:"history,omitempty"`
	// heartbeatDelay has the delays of the last heartbeats by hour. The hub writes it with the rest of
	// the status. No decision depends on it. A Muster addition.
	// +optional
	HeartbeatDelay *HeartbeatDelay `json:"heartbeatDelay,omitempty"`
}

// CredentialStatus is the status of an agent's credential.
type CredentialStatus struct {
	// kind is native: the credential expires, and the hub renews it before.
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
	// sequence is the number of the newest credential that the agent has used.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// superseded is the sequence of an older credential that was used after a newer one: the cluster
	// was copied, or restored from a backup. Absent if none was.
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
