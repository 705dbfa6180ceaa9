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

// InternalMemberClusterSpec is the desired state of an InternalMemberCluster. Only the hub writes
// it.
type InternalMemberClusterSpec struct {
	// state is Join or Leave.
	// +required
	State ClusterState `json:"state"`
	// heartbeatPeriodSeconds is the period of the agent's heartbeats.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`
	// hub is the desired address of the hub; absent if the hub's settings have none. Agents of
	// KubeFleet ignore it. A Muster addition.
	// +optional
	Hub *HubAddress `json:"hub,omitempty"`
	// leavePolicy is the treatment of placed objects when the member leaves. With Delete, the agent
	// removes them before it reports the leave. With Orphan, the default, they stay. The hub sets
	// Delete before it requests the leave, because a member may leave by itself to register elsewhere.
	// Agents of KubeFleet ignore the field. A Muster addition.
	// +optional
	LeavePolicy LeavePolicy `json:"leavePolicy,omitempty"`
	// uninstallAgent requires the agent to remove itself and its namespace from its cluster when it
	// leaves, after everything that leavePolicy removes. A Muster addition.
	// +optional
	UninstallAgent bool `json:"uninstallAgent,omitempty"`
	// credential is the newest credential issued to the agent since its registration; absent before
	// the first. A Muster addition.
	// +optional
	Credential *IssuedCredential `json:"credential,omitempty"`
	// warning is a message of the hub to the administrators of the member; the agent logs it and shows
	// it in its state. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Warning string `json:"warning,omitempty"`
	// quarantined stops all deliveries to the member and all removals from it. A Muster addition.
	// +optional
	Quarantined bool `json:"quarantined,omitempty"`
	// HealthCheck sets how many results of the health check in a row change the reported health; if
	// absent, one. A Muster addition.
	// +optional
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
	// hubTerm is the term of this hub. Muster's agents obey no lower term of the same hub later. A
	// Muster addition.
	// +optional
	HubTerm *HubTerm `json:"hubTerm,omitempty"`
}

// IssuedCredential is a credential sealed to the agent.
type IssuedCredential struct {
	// accountUID is the UID of the member's account for this credential; the credential is valid as
	// long as the account exists.
	// +required
	// +kubebuilder:validation:MaxLength=64
	AccountUID string `json:"accountUID"`
	// sequence counts the credentials of the account, from 1; the registration's credential has none.
	// +required
	// +kubebuilder:validation:Minimum=1
	Sequence int64 `json:"sequence"`
	// after is the sequence of the replaced credential; 0 for the registration's. An agent with an
	// older credential is a copy, or was restored from a backup. It ignores this credential.
	// +optional
	After int64 `json:"after,omitempty"`
	// issued is the time of issue, by the hub's clock.
	// +required
	Issued metav1.Time `json:"issued"`
	// expires is the time of expiry, by the hub's clock.
	// +required
	Expires metav1.Time `json:"expires"`
	// sealed is the token, encrypted to the agent's pinned key; absent once the agent uses it.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Sealed []byte `json:"sealed,omitempty"`
}

// HubAddress is the address of the hub for members, with the trusted certificates. An empty field
// keeps the agent's current value.
type HubAddress struct {
	// apiServerURL is the URL of the hub's API server, https://host[:port].
	// +optional
	APIServerURL string `json:"apiServerURL,omitempty"`
	// apiServerCA is a PEM bundle of the hub's certificate authorities. During a change it holds the
	// old and the new one.
	// +optional
	APIServerCA string `json:"apiServerCA,omitempty"`
	// agentTLSMode is strict (trust apiServerCA only) or system-store (also trust the system's
	// authorities).
	// +optional
	AgentTLSMode string `json:"agentTLSMode,omitempty"`
	// fallbacks are further addresses of the hub, in order. The agent uses the next one while the
	// others do not answer.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	Fallbacks []HubFallback `json:"fallbacks,omitempty"`
	// fallbackAfterSeconds is the time without an answer before the agent uses a fallback; 60 if it is
	// absent. Each agent adds up to half of it, at random.
	// +optional
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=3600
	FallbackAfterSeconds int32 `json:"fallbackAfterSeconds,omitempty"`
}

// FeatureManagedAgent means that the agent adopts its own release from a BundleDeployment with the
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

// FeatureUninstall means: the agent can remove itself from its cluster.
const FeatureUninstall = "Uninstall"

// FeatureHosted means: the Deployment of the agent is on another cluster than the member.
const FeatureHosted = "Hosted"

// InternalMemberClusterStatus is the observed state of an InternalMemberCluster. Only the agent
// writes it. Above 256 KiB the hub keeps only the health. A condition's message has at most 2048
// characters, a reason or type 128.
type InternalMemberClusterStatus struct {
	// conditions are the conditions of the member's property provider.
	// +optional
	// +kubebuilder:validation:MaxItems=6
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// properties are the properties of the member by name, such as kubernetes-fleet.io/node-count. A
	// KubeFleet agent with a cloud's property provider has dozens, several for every machine size in
	// use.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 253)",message="a key has more than 253 characters"
	Properties map[string]PropertyValue `json:"properties,omitempty"`
	// resourceUsage is the capacity of the member, and the part of it that is free.
	// +optional
	ResourceUsage ResourceUsage `json:"resourceUsage,omitempty"`
	// namespaces maps the member's namespaces to their owning Works. At most 200; empty if the agent
	// does not collect them.
	// +optional
	// +kubebuilder:validation:MaxProperties=224
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 63)",message="a key has more than 63 characters"
	Namespaces map[string]limits.Name `json:"namespaces,omitempty"`
	// agentStatus has an entry per agent. The entry of Muster's agent has the type MemberAgent.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	AgentStatus []AgentStatus `json:"agentStatus,omitempty"`
	// nodes counts the member's nodes. A Muster addition.
	// +optional
	Nodes *NodeSummary `json:"nodes,omitempty"`
	// kubernetesVersion is the version of the member's API server, such as v1.36.3. A Muster addition.
	// +optional
	KubernetesVersion limits.Name `json:"kubernetesVersion,omitempty"`
	// agentVersion is the version of the agent that writes this report. A Muster addition.
	// +optional
	AgentVersion limits.Name `json:"agentVersion,omitempty"`
	// features lists optional abilities of this agent. Other versions or settings may lack some. A
	// Muster addition.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Features []limits.Name `json:"features,omitempty"`
	// agentNamespace is the namespace of the agent on the member. A Muster addition.
	// +optional
	AgentNamespace limits.Name `json:"agentNamespace,omitempty"`
	// agentKey is the agent's Ed25519 public key. With it the hub recognizes the agent and seals its
	// credential. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	AgentKey []byte `json:"agentKey,omitempty"`
	// credential is the credential in use. Absent while the agent waits because another one sends the
	// heartbeats. A Muster addition.
	// +optional
	Credential *CredentialInUse `json:"credential,omitempty"`
	// hub is the hub's address in use. A Muster addition.
	// +optional
	Hub *HubInUse `json:"hub,omitempty"`
	// hubTerm is the term that the agent obeys, if it refuses the term in the spec. A Muster addition.
	// +optional
	HubTerm *HubTerm `json:"hubTerm,omitempty"`
}

// CredentialInUse names the credential of an agent that writes its report.
type CredentialInUse struct {
	// accountUID is the UID of the credential's account on the hub.
	// +required
	// +kubebuilder:validation:MaxLength=64
	AccountUID string `json:"accountUID"`
	// sequence is the sequence of the credential; zero for the registration's credential.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	Sequence int64 `json:"sequence"`
	// expires is the expiry of the credential, by the hub's clock; absent if it never expires.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
}

// NodeSummary counts the nodes of a member.
type NodeSummary struct {
	// total is the number of nodes.
	// +required
	Total int32 `json:"total"`
	// ready is the number of nodes with the condition Ready=True.
	// +required
	Ready int32 `json:"ready"`
	// sample is the name of one node: the first ready one by name, else the first.
	// +optional
	Sample limits.Name `json:"sample,omitempty"`
}

// PropertyValue is the value of a property with the time of its observation.
type PropertyValue struct {
	// value is the property's value, usually a Kubernetes quantity.
	// +required
	// +kubebuilder:validation:MaxLength=16384
	Value string `json:"value"`
	// observationTime is the time of the agent's observation, by the member's clock.
	// +required
	ObservationTime metav1.Time `json:"observationTime"`
}

// ResourceUsage holds the resources of a member.
type ResourceUsage struct {
	// capacity is the capacity of all nodes together.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=48
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 128)",message="a key has more than 128 characters"
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// allocatable is the sum of the allocatable resources of all nodes.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=48
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 128)",message="a key has more than 128 characters"
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// available is allocatable minus the requests of Pods.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=48
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 128)",message="a key has more than 128 characters"
	Available corev1.ResourceList `json:"available,omitempty"`
	// observationTime is the time of the agent's observation, by the member's clock.
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
	// type is the type of the agent.
	// +required
	Type AgentType `json:"type"`
	// conditions: Joined, Healthy; and Pruned while the agent cannot remove a release.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=6
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// lastReceivedHeartbeat is the time of a recent heartbeat.
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
