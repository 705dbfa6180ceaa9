package v1beta1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// InternalMemberCluster is the report of a member, in its member namespace on the hub. Its spec is what the hub asks of
// the agent, its status what the agent answers; neither writes the other's half.
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

// ClusterState is what the hub asks a member to do.
type ClusterState string

// The states the hub asks for.
const (
	// ClusterStateJoin asks the agent to beat and report.
	ClusterStateJoin ClusterState = "Join"
	// ClusterStateLeave asks the agent to remove what it placed and stop.
	ClusterStateLeave ClusterState = "Leave"
)

// InternalMemberClusterSpec is written by the hub only.
type InternalMemberClusterSpec struct {
	// State is Join or Leave.
	// +required
	State ClusterState `json:"state"`
	// HeartbeatPeriodSeconds is how often the agent proves that it is alive.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`
	// Hub is where the agent should reach the hub from now on; absent if the hub was not told. Agents of KubeFleet ignore it. A
	// Muster addition.
	// +optional
	Hub *HubAddress `json:"hub,omitempty"`
	// LeavePolicy is what becomes, when the member leaves, of what was placed on it: Delete (it is removed, and only then the agent
	// says that the member has left) or Orphan (it stays as it is; the default). Set by the hub when it asks the member to leave, and
	// before that if it is Delete: a member may leave by itself, to register elsewhere.
	// Agents of KubeFleet ignore it. A Muster addition.
	// +optional
	LeavePolicy LeavePolicy `json:"leavePolicy,omitempty"`
	// Credential is the newest credential that the hub has issued to the agent since it registered; absent before the first. A Muster addition.
	// +optional
	Credential *IssuedCredential `json:"credential,omitempty"`
	// Warning is what the hub wants the people who run the member to know; the agent logs it and shows it in its state. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Warning string `json:"warning,omitempty"`
}

// IssuedCredential is a credential that only the agent can read.
type IssuedCredential struct {
	// AccountUID is the UID of the account of the member for which the credential was issued; the credential counts as long as the account is there.
	// +required
	// +kubebuilder:validation:MaxLength=64
	AccountUID string `json:"accountUID"`
	// Sequence counts the credentials of the account, from 1; that of the registration has none.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence"`
	// After is the sequence of the credential that the agent used when this one was issued; 0 is that of the registration. An agent that uses an older one is
	// a copy, or was restored from a backup, and leaves this one alone.
	// +optional
	After int64 `json:"after,omitempty"`
	// Issued is when the credential was issued, by the hub's clock.
	// +required
	Issued metav1.Time `json:"issued"`
	// Expires is when the credential ends, by the hub's clock.
	// +required
	Expires metav1.Time `json:"expires"`
	// Sealed is the token, encrypted to the key of the agent that the hub has pinned; absent once the agent uses it.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Sealed []byte `json:"sealed,omitempty"`
}

// LeavePolicy is what becomes of what was placed on a member that leaves.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type LeavePolicy string

// The policies.
const (
	// LeaveDelete removes it.
	LeaveDelete LeavePolicy = "Delete"
	// LeaveOrphan lets it stay as it is.
	LeaveOrphan LeavePolicy = "Orphan"
)

// HubAddress is where members reach the hub and whom they trust there. A field that is empty leaves the agent what it has.
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

// FeatureManagedAgent says that the agent adopts its own release when a BundleDeployment with the label muster/agent-version says so.
const FeatureManagedAgent = "ManagedAgent"

// FeatureHandOver says that the agent hands an object over between Works of the same placement instead of deleting what leaves a Work.
const FeatureHandOver = "HandOver"

// FeatureLongDigest says that the agent knows member namespaces whose names have a digest of 64 bits.
const FeatureLongDigest = "LongDigest"

// FeatureReconnect says that the agent of a MemberCluster keeps the token with which it comes back
// by its key, once its credential has run out.
const FeatureReconnect = "Reconnect"

// InternalMemberClusterStatus is written by the agent only. The hub keeps only the health of one of more than 256 KiB; a message of a condition
// has at most 2048 characters, a reason or type 128.
type InternalMemberClusterStatus struct {
	// Conditions of the member's property provider.
	// +optional
	// +kubebuilder:validation:MaxItems=6
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Properties of the member by name, such as kubernetes-fleet.io/node-count. A KubeFleet agent with a property provider of a cloud has some
	// for every size of machine in use, which is dozens.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 253)",message="a key has more than 253 characters"
	Properties map[string]PropertyValue `json:"properties,omitempty"`
	// ResourceUsage of the member.
	// +optional
	ResourceUsage ResourceUsage `json:"resourceUsage,omitempty"`
	// Namespaces of the member and the Works that own them, at most 200 of either system's agents; empty if the agent does not collect them.
	// +optional
	// +kubebuilder:validation:MaxProperties=224
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 63)",message="a key has more than 63 characters"
	Namespaces map[string]limits.Name `json:"namespaces,omitempty"`
	// AgentStatus has an entry per agent, which that agent writes; Muster's own has the type MemberAgent.
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
	// Features are what the agent can do that agents of earlier versions, or with other settings, cannot. A Muster addition.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Features []limits.Name `json:"features,omitempty"`
	// AgentNamespace is where the agent runs on the member. A Muster addition.
	// +optional
	AgentNamespace limits.Name `json:"agentNamespace,omitempty"`
	// AgentKey is the Ed25519 public key by which the hub knows the agent again, and to which it seals the agent's credential. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AgentKey []byte `json:"agentKey,omitempty"`
	// Credential is the one that the agent uses, as far as the agent knows; absent of an agent that waits while another one sends heartbeats for
	// the member. A Muster addition.
	// +optional
	Credential *CredentialInUse `json:"credential,omitempty"`
	// Hub is how the agent reaches the hub now. A Muster addition.
	// +optional
	Hub *HubInUse `json:"hub,omitempty"`
}

// HubInUse is how an agent reaches the hub, and why not as spec.hub asks, if it does not.
type HubInUse struct {
	// APIServerURL is the URL that the agent uses.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	APIServerURL string `json:"apiServerURL,omitempty"`
	// APIServerCAHash is the hash of the CA that the agent was given, in the form of the field of that name of a Cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	APIServerCAHash string `json:"apiServerCAHash,omitempty"`
	// AgentTLSMode is strict, system-store, or insecure if the agent's own settings say that nothing is verified.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	AgentTLSMode string `json:"agentTLSMode,omitempty"`
	// ObservedGeneration is the generation of the spec that the failure is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Failure says why the agent could not move to the address that spec.hub asks for, and stays with the one above; empty if it
	// could, or has not tried yet.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Failure string `json:"failure,omitempty"`
}

// CredentialInUse names the credential with which an agent writes its report.
type CredentialInUse struct {
	// AccountUID is the UID of the account on the hub that the credential is of.
	// +required
	// +kubebuilder:validation:MaxLength=64
	AccountUID string `json:"accountUID"`
	// Sequence is that of the credential; zero for the one of the registration.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	Sequence int64 `json:"sequence"`
	// Expires is when the credential ends, by the hub's clock; absent if never.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
}

// NodeSummary counts the nodes of a member.
type NodeSummary struct {
	// Total number of nodes.
	// +required
	Total int32 `json:"total"`
	// Ready is how many of them have the condition Ready=True.
	// +required
	Ready int32 `json:"ready"`
	// Sample is the name of one node: the first ready one by name, else the first.
	// +optional
	Sample limits.Name `json:"sample,omitempty"`
}

// PropertyValue is the value of a property and when it was observed.
type PropertyValue struct {
	// Value, usually a Kubernetes quantity. KubeFleet's property provider also reports the certificate authority of the cluster in one.
	// +required
	// +kubebuilder:validation:MaxLength=16384
	Value string `json:"value"`
	// ObservationTime is when the agent observed it, by the member's clock.
	// +required
	ObservationTime metav1.Time `json:"observationTime"`
}

// ResourceUsage is what a member has.
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
	// Available is allocatable minus what pods request.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=48
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 128)",message="a key has more than 128 characters"
	Available corev1.ResourceList `json:"available,omitempty"`
	// ObservationTime is when the agent observed it, by the member's clock.
	// +optional
	ObservationTime metav1.Time `json:"observationTime,omitempty"`
}

// AgentType names an agent of a member.
//
// +kubebuilder:validation:MaxLength=63
type AgentType string

// MemberAgent is the type of the agent that joins and reports.
const MemberAgent AgentType = "MemberAgent"

// AgentStatus is what one agent says of itself.
type AgentStatus struct {
	// Type of the agent.
	// +required
	Type AgentType `json:"type"`
	// Conditions: Joined, Healthy; Pruned only while a release that should go is still there.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=6
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// LastReceivedHeartbeat is a recent beat.
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

// HeartbeatPeriod is spec.heartbeatPeriodSeconds as a duration; 60 s if it is not set.
func (i *InternalMemberCluster) HeartbeatPeriod() time.Duration {
	if i.Spec.HeartbeatPeriodSeconds == 0 {
		return time.Minute
	}
	return time.Duration(i.Spec.HeartbeatPeriodSeconds) * time.Second
}
