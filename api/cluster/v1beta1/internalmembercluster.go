package v1beta1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// InternalMemberCluster is the report of a member, in its member namespace on the hub. The hub
// writes the spec, with its requests to the agent. The agent writes the status, with its answers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=internalmemberclusters,shortName=imc,categories={fleet,fleet-cluster}
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type InternalMemberCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec InternalMemberClusterSpec `json:"spec"`
	// +optional
	Status InternalMemberClusterStatus `json:"status,omitempty"`
}

// ClusterState is the hub's request to a member.
type ClusterState string

// The states that the hub requests.
const (
	// ClusterStateJoin requests heartbeats and reports.
	ClusterStateJoin ClusterState = "Join"
	// ClusterStateLeave requests the agent to remove the placed objects and stop.
	ClusterStateLeave ClusterState = "Leave"
)

// InternalMemberClusterSpec is written by the hub only.
type InternalMemberClusterSpec struct {
	// State is Join or Leave.
	// +required
	State ClusterState `json:"state"`
	// HeartbeatPeriodSeconds is the period of the agent's heartbeats.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`
	// Hub is the desired address of the hub for the agent; absent if the hub's settings have none.
	// Agents of KubeFleet ignore it. A Muster addition.
	// +optional
	Hub *HubAddress `json:"hub,omitempty"`
	// LeavePolicy decides about the placed objects when the member leaves. With Delete the agent
	// removes them, and only then reports that the member has left. With Orphan, the default, they
	// stay. The hub sets Delete before it requests the member to leave, because a member may leave by
	// itself, to register elsewhere. Agents of KubeFleet ignore it. A Muster addition.
	// +optional
	LeavePolicy LeavePolicy `json:"leavePolicy,omitempty"`
	// Credential is the newest credential issued to the agent since its registration; absent before
	// the first. A Muster addition.
	// +optional
	Credential *IssuedCredential `json:"credential,omitempty"`
	// Warning is a message of the hub to the administrators of the member; the agent logs it and shows
	// it in its state. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Warning string `json:"warning,omitempty"`
	// Quarantined stops deliveries and removals. A Muster addition.
	// +optional
	Quarantined bool `json:"quarantined,omitempty"`
}

// IssuedCredential is a credential that only the agent can read.
type IssuedCredential struct {
	// AccountUID is the UID of the member's account for this credential; the credential is valid as
	// long as the account exists.
	// +required
	// +kubebuilder:validation:MaxLength=64
	AccountUID string `json:"accountUID"`
	// Sequence counts the credentials of the account, from 1; the registration's credential has none.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence"`
	// After is the sequence of the agent's credential when this one was issued; 0 for the
	// registration's credential. An agent with an older one is a copy, or was restored from a backup,
	// and ignores this credential.
	// +optional
	After int64 `json:"after,omitempty"`
	// Issued is the time of issue, by the hub's clock.
	// +required
	Issued metav1.Time `json:"issued"`
	// Expires is the expiry, by the hub's clock.
	// +required
	Expires metav1.Time `json:"expires"`
	// Sealed is the token, encrypted to the agent's pinned key; absent once the agent uses it.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Sealed []byte `json:"sealed,omitempty"`
}

// LeavePolicy decides about the objects placed on a leaving member.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type LeavePolicy string

// The policies.
const (
	// LeaveDelete removes them.
	LeaveDelete LeavePolicy = "Delete"
	// LeaveOrphan leaves them unchanged.
	LeaveOrphan LeavePolicy = "Orphan"
)

// HubAddress is the address of the hub for members, with the trusted certificates. An empty field
// keeps the agent's current value.
type HubAddress struct {
	// APIServerURL is the URL of the hub's API server, https://host[:port].
	// +optional
	APIServerURL string `json:"apiServerURL,omitempty"`
	// APIServerCA is a PEM bundle; it may hold the old certificate and the new one.
	// +optional
	APIServerCA string `json:"apiServerCA,omitempty"`
	// AgentTLSMode is strict (trust apiServerCA only) or system-store (the system's authorities, too).
	// +optional
	AgentTLSMode string `json:"agentTLSMode,omitempty"`
}

// FeatureManagedAgent means: the agent adopts its own release from a BundleDeployment with the
// label muster/agent-version.
const FeatureManagedAgent = "ManagedAgent"

// FeatureHandOver means: the agent hands an object over between Works of the same placement instead
// of deleting it when it leaves a Work.
const FeatureHandOver = "HandOver"

// FeatureLongDigest means: the agent knows member namespaces whose names have a digest of 64 bits.
const FeatureLongDigest = "LongDigest"

// FeatureReconnect means: the agent of a MemberCluster keeps its token. With the token and its key
// it rejoins after its credential has expired.
const FeatureReconnect = "Reconnect"

// InternalMemberClusterStatus is written by the agent only. Above 256 KiB the hub keeps only the
// health. A condition's message has at most 2048 characters, a reason or type 128.
type InternalMemberClusterStatus struct {
	// Conditions of the member's property provider.
	// +optional
	// +kubebuilder:validation:MaxItems=6
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Properties of the member by name, such as kubernetes-fleet.io/node-count. A KubeFleet agent with
	// a cloud's property provider has dozens, several for every machine size in use.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 253)",message="a key has more than 253 characters"
	Properties map[string]PropertyValue `json:"properties,omitempty"`
	// ResourceUsage of the member.
	// +optional
	ResourceUsage ResourceUsage `json:"resourceUsage,omitempty"`
	// Namespaces of the member and their owning Works, at most 200 from either system's agents; empty
	// if the agent does not collect them.
	// +optional
	// +kubebuilder:validation:MaxProperties=224
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 63)",message="a key has more than 63 characters"
	Namespaces map[string]limits.Name `json:"namespaces,omitempty"`
	// AgentStatus has an entry per agent, written by that agent; Muster's own has the type
	// MemberAgent.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`
	// Nodes summarises the member's nodes. A Muster addition.
	// +optional
	Nodes *NodeSummary `json:"nodes,omitempty"`
	// KubernetesVersion of the member's API server, such as v1.36.3. A Muster addition.
	// +optional
	KubernetesVersion limits.Name `json:"kubernetesVersion,omitempty"`
	// AgentVersion is the version of the agent that writes this report. A Muster addition.
	// +optional
	AgentVersion limits.Name `json:"agentVersion,omitempty"`
	// Features lists abilities that agents of earlier versions, or with other settings, lack. A Muster
	// addition.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Features []limits.Name `json:"features,omitempty"`
	// AgentNamespace is the namespace of the agent on the member. A Muster addition.
	// +optional
	AgentNamespace limits.Name `json:"agentNamespace,omitempty"`
	// AgentKey is the agent's Ed25519 public key. With it the hub recognizes the agent and seals its
	// credential. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AgentKey []byte `json:"agentKey,omitempty"`
	// Credential is the credential in use, as far as the agent knows. An agent that waits while
	// another one sends the member's heartbeats reports none. A Muster addition.
	// +optional
	Credential *CredentialInUse `json:"credential,omitempty"`
	// Hub is the hub's address in use. A Muster addition.
	// +optional
	Hub *HubInUse `json:"hub,omitempty"`
}

// HubInUse is an agent's address of the hub, with the failure if it is not the address in spec.hub.
type HubInUse struct {
	// APIServerURL is the URL in use.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	APIServerURL string `json:"apiServerURL,omitempty"`
	// APIServerCAHash is the hash of the agent's CA, in the form of the Cluster field of that name.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	APIServerCAHash string `json:"apiServerCAHash,omitempty"`
	// AgentTLSMode is strict, system-store, or insecure if the agent's own settings turn verification
	// off.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	AgentTLSMode string `json:"agentTLSMode,omitempty"`
	// ObservedGeneration is the generation of the spec behind the failure.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Failure is the cause why the agent could not move to the address in spec.hub. The agent then
	// keeps the one above. Empty if it could, or has not tried yet.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Failure string `json:"failure,omitempty"`
}

// CredentialInUse names the credential of an agent that writes its report.
type CredentialInUse struct {
	// AccountUID is the UID of the credential's account on the hub.
	// +required
	// +kubebuilder:validation:MaxLength=64
	AccountUID string `json:"accountUID"`
	// Sequence is the sequence of the credential; zero for the registration's credential.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	Sequence int64 `json:"sequence"`
	// Expires is the expiry of the credential, by the hub's clock; absent if it never expires.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
}

// NodeSummary counts the nodes of a member.
type NodeSummary struct {
	// Total number of nodes.
	// +required
	Total int32 `json:"total"`
	// Ready is the number of nodes with the condition Ready=True.
	// +required
	Ready int32 `json:"ready"`
	// Sample is the name of one node: the first ready one by name, else the first.
	// +optional
	Sample limits.Name `json:"sample,omitempty"`
}

// PropertyValue is the value of a property with the time of its observation.
type PropertyValue struct {
	// Value, usually a Kubernetes quantity. KubeFleet's property provider also reports the certificate
	// authority of the cluster in one.
	// +required
	// +kubebuilder:validation:MaxLength=16384
	Value string `json:"value"`
	// ObservationTime is the time of the agent's observation, by the member's clock.
	// +required
	ObservationTime metav1.Time `json:"observationTime"`
}

// ResourceUsage holds the resources of a member.
type ResourceUsage struct {
	// Capacity of all nodes together.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=48
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 128)",message="a key has more than 128 characters"
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Allocatable resources of all nodes together.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=48
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 128)",message="a key has more than 128 characters"
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Available is allocatable minus the requests of Pods.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=48
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 128)",message="a key has more than 128 characters"
	Available corev1.ResourceList `json:"available,omitempty"`
	// ObservationTime is the time of the agent's observation, by the member's clock.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
}

// AgentType names an agent of a member.
//
// +kubebuilder:validation:MaxLength=63
type AgentType string

// MemberAgent is the type of the agent that joins and reports.
const MemberAgent AgentType = "MemberAgent"

// AgentStatus is an agent's report about itself.
type AgentStatus struct {
	// Type of the agent.
	// +required
	Type AgentType `json:"type"`
	// Conditions: Joined, Healthy. Pruned is present only while a release that should be gone still
	// exists.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=6
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// LastReceivedHeartbeat is the time of a recent heartbeat.
	// +optional
	LastReceivedHeartbeat metav1.Time `json:"lastReceivedHeartbeat,omitempty"`
}

// FindAgent returns the entry of an agent, or nil.
func FindAgent(agents []AgentStatus, kind AgentType) *AgentStatus {
	for i := range agents {
		if agents[i].Type == kind {
			return &agents[i]
		}
	}
	return nil
}

// InternalMemberClusterList is a list of InternalMemberClusters.
//
// +kubebuilder:object:root=true
type InternalMemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InternalMemberCluster `json:"items"`
}

// HeartbeatPeriod returns spec.heartbeatPeriodSeconds as a duration; 60 s if it is not set.
func (i *InternalMemberCluster) HeartbeatPeriod() time.Duration {
	if i.Spec.HeartbeatPeriodSeconds == 0 {
		return time.Minute
	}
	return time.Duration(i.Spec.HeartbeatPeriodSeconds) * time.Second
}
