package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/api/limits"
)

// Cluster is a member of the fleet that joined by registration, in its workspace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusters
// +kubebuilder:printcolumn:name="Bundles-Ready",type=string,JSONPath=`.status.display.readyBundles`
// +kubebuilder:printcolumn:name="Nodes-Ready",type=string,JSONPath=`.status.display.readyNodes`
// +kubebuilder:printcolumn:name="Sample-Node",type=string,JSONPath=`.status.display.sampleNode`
// +kubebuilder:printcolumn:name="Last-Seen",type=string,JSONPath=`.status.agent.lastSeen`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Credential",type=string,priority=1,JSONPath=`.status.credential.kind`
// +kubebuilder:printcolumn:name="Expires",type=string,priority=1,JSONPath=`.status.credential.expires`
// +kubebuilder:printcolumn:name="Key",type=string,priority=1,JSONPath=`.status.credential.key`
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ClusterSpec `json:"spec,omitempty"`
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSpec is written by users.
type ClusterSpec struct {
	// Paused stops the rollout of BundleDeployments to this cluster.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// ClientID is the identity that an agent must present to become this Cluster. It is opaque and
	// should not be guessable. If it is empty and kubeConfigSecret is set, the identity is the UID of
	// this object.
	// +optional
	// +nullable
	ClientID limits.Name `json:"clientID,omitempty"`
	// KubeConfigSecret names a Secret with a kubeconfig under `value`; its presence selects
	// manager-initiated registration.
	// +optional
	// +nullable
	KubeConfigSecret limits.Name `json:"kubeConfigSecret,omitempty"`
	// KubeConfigSecretNamespace is the namespace of that Secret, by default the Cluster's own.
	// +optional
	// +nullable
	KubeConfigSecretNamespace limits.Name `json:"kubeConfigSecretNamespace,omitempty"`
	// Reconnect lets a native agent rejoin without a registration token after its credential has
	// expired. The agent must prove to have the key pinned to the Cluster. Default true. A Muster
	// addition.
	// +optional
	// +nullable
	Reconnect *bool `json:"reconnect,omitempty"`
	// HeartbeatPeriodSeconds is the period of the heartbeats of Muster's agent. Default: 10 s to a
	// minute, by the number of members. A Muster addition.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	HeartbeatPeriodSeconds *int32 `json:"heartbeatPeriodSeconds,omitempty"`
	// RedeployAgentGeneration re-imports a manager-initiated cluster after each change.
	// +optional
	RedeployAgentGeneration int64 `json:"redeployAgentGeneration,omitempty"`
	// AgentEnvVars are appended to the agent's environment.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	AgentEnvVars []corev1.EnvVar `json:"agentEnvVars,omitempty"`
	// AgentNamespace is the namespace of the agent downstream, by default the name of the hub's system
	// namespace.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	AgentNamespace string `json:"agentNamespace,omitempty"`
	// PrivateRepoURL is a registry prefix for the agent's image.
	// +optional
	// +nullable
	PrivateRepoURL limits.Line `json:"privateRepoURL,omitempty"`
	// TemplateValues are available to Bundles as `.ClusterValues`.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	TemplateValues *runtime.RawExtension `json:"templateValues,omitempty"`
	// AgentTolerations of the agent's pod.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	AgentTolerations []corev1.Toleration `json:"agentTolerations,omitempty"`
	// AgentAffinity of the agent's pod.
	// +optional
	// +nullable
	AgentAffinity *corev1.Affinity `json:"agentAffinity,omitempty"`
	// AgentResources of the agent's container.
	// +optional
	// +nullable
	AgentResources *corev1.ResourceRequirements `json:"agentResources,omitempty"`
	// HostNetwork runs the agent on the host's network.
	// +optional
	// +nullable
	HostNetwork *bool `json:"hostNetwork,omitempty"`
	// AgentSchedulingCustomization sets a PriorityClass and a PodDisruptionBudget for the agent.
	// +optional
	// +nullable
	AgentSchedulingCustomization *AgentSchedulingCustomization `json:"agentSchedulingCustomization,omitempty"`
	// AgentPullSecrets are references only; null copies the hub's own list.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	AgentPullSecrets *[]corev1.LocalObjectReference `json:"agentPullSecrets,omitempty"`
	// InitGates hold back all deliveries to a new cluster until it is set up. They open one after the
	// other. The Bundle of the next gate is delivered, and everything else once the last gate is open.
	// They stay open then. A registration token can set them. None by default. A Muster addition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	InitGates []InitGate `json:"initGates,omitempty"`
}

// AgentSchedulingCustomization sets the scheduling of the agent downstream.
type AgentSchedulingCustomization struct {
	// PriorityClass to create for the agent.
	// +optional
	PriorityClass *PriorityClassSpec `json:"priorityClass,omitempty"`
	// PodDisruptionBudget to create for the agent.
	// +optional
	PodDisruptionBudget *PodDisruptionBudgetSpec `json:"podDisruptionBudget,omitempty"`
}

// PriorityClassSpec describes a PriorityClass.
type PriorityClassSpec struct {
	// Value of the priority.
	// +optional
	Value int `json:"value,omitempty"`
	// PreemptionPolicy is PreemptLowerPriority or Never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=63
	PreemptionPolicy *corev1.PreemptionPolicy `json:"preemptionPolicy,omitempty"`
}

// PodDisruptionBudgetSpec describes a PodDisruptionBudget; one of its fields is set.
type PodDisruptionBudgetSpec struct {
	// MinAvailable is a number or a percentage.
	// +optional
	MinAvailable limits.Name `json:"minAvailable,omitempty"`
	// MaxUnavailable is a number or a percentage.
	// +optional
	MaxUnavailable limits.Name `json:"maxUnavailable,omitempty"`
}

// ClusterStatus is written by the hub, except agent, which upstream agents patch themselves.
type ClusterStatus struct {
	// Conditions: Ready, Processed, LabelsAccepted, DeliveryApproved, Supported, Pruned,
	// HubConfigured, Imported, AgentUpToDate, Reconciled, Cloned, Initialized.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// Namespace is the member namespace on the hub.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Summary rolls up the BundleDeployments of the cluster.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// ResourceCounts rolls up the deployed resources.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// ReadyGitRepos counts the ready GitRepos.
	// +optional
	ReadyGitRepos int `json:"readyGitRepos"`
	// DesiredReadyGitRepos counts the GitRepos targeting the cluster.
	// +optional
	DesiredReadyGitRepos int `json:"desiredReadyGitRepos"`
	// ReadyHelmOps counts the ready HelmOps.
	// +optional
	ReadyHelmOps int `json:"readyHelmOps"`
	// DesiredReadyHelmOps counts the HelmOps targeting the cluster.
	// +optional
	DesiredReadyHelmOps int `json:"desiredReadyHelmOps"`
	// Properties are the facts of the member by name, as a MemberCluster has them, such as
	// muster/region. Only agents of Muster report them. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 253)",message="a key has more than 253 characters"
	Properties map[string]clusterv1beta1.PropertyValue `json:"properties,omitempty"`
	// AgentEnvVarsHash is the hash of the spec field last applied downstream.
	// +optional
	AgentEnvVarsHash string `json:"agentEnvVarsHash,omitempty"`
	// AgentPrivateRepoURL is the spec value last applied downstream.
	// +optional
	AgentPrivateRepoURL string `json:"agentPrivateRepoURL,omitempty"`
	// AgentHostNetwork is the spec value last applied downstream.
	// +optional
	AgentHostNetwork bool `json:"agentHostNetwork,omitempty"`
	// AgentAffinityHash is the hash of the spec field last applied downstream.
	// +optional
	AgentAffinityHash string `json:"agentAffinityHash,omitempty"`
	// AgentResourcesHash is the hash of the spec field last applied downstream.
	// +optional
	AgentResourcesHash string `json:"agentResourcesHash,omitempty"`
	// AgentTolerationsHash is the hash of the spec field last applied downstream.
	// +optional
	AgentTolerationsHash string `json:"agentTolerationsHash,omitempty"`
	// AgentSchedulingCustomizationHash is the hash of the spec field last applied downstream.
	// +optional
	AgentSchedulingCustomizationHash string `json:"agentSchedulingCustomizationHash,omitempty"`
	// AgentDeployedGeneration is spec.redeployAgentGeneration of the last successful import; null if
	// never imported.
	// +optional
	// +nullable
	AgentDeployedGeneration *int64 `json:"agentDeployedGeneration,omitempty"`
	// AgentMigrated is an upstream migration marker.
	// +optional
	AgentMigrated bool `json:"agentMigrated,omitempty"`
	// AgentNamespaceMigrated is an upstream migration marker.
	// +optional
	AgentNamespaceMigrated bool `json:"agentNamespaceMigrated,omitempty"`
	// CattleNamespaceMigrated is an upstream migration marker.
	// +optional
	CattleNamespaceMigrated bool `json:"cattleNamespaceMigrated,omitempty"`
	// AgentConfigChanged requires a re-import.
	// +optional
	AgentConfigChanged bool `json:"agentConfigChanged,omitempty"`
	// APIServerURL is the hub's URL in the agent's report; an agent of Rancher Fleet reports none.
	// +optional
	APIServerURL string `json:"apiServerURL,omitempty"`
	// APIServerCAHash is the hash of the hub's CA in the agent's report, in upstream's form (SHA-224
	// of the bytes as JSON).
	// +optional
	APIServerCAHash string `json:"apiServerCAHash,omitempty"`
	// AgentTLSMode is the TLS mode in the agent's report.
	// +optional
	AgentTLSMode string `json:"agentTLSMode,omitempty"`
	// GarbageCollectionInterval is the interval last handed to the agent.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="garbageCollectionInterval must be 0 or a Go duration such as 240h or 90m, at most 2562047h; the units are ns, us, µs, ms, s, m and h, there is none for days"
	GarbageCollectionInterval *metav1.Duration `json:"garbageCollectionInterval,omitempty"`
	// Import is the result of the last import of a manager-initiated cluster; null if it was never
	// imported. A Muster addition, written by the hub.
	// +optional
	Import *ImportStatus `json:"import,omitempty"`
	// Display holds the columns of `kubectl get`.
	// +optional
	Display ClusterDisplay `json:"display,omitempty"`
	// Agent is the status of the agent.
	// +optional
	Agent AgentStatus `json:"agent,omitempty"`
	// Credential is the status of the agent's credential; absent before the first heartbeat. A Muster
	// addition, written by the hub.
	// +optional
	Credential *CredentialStatus `json:"credential,omitempty"`
	// Scheduled is true if a Schedule selects the cluster.
	// +optional
	Scheduled bool `json:"scheduled,omitempty"`
	// ActiveSchedule is true if such a Schedule is active now.
	// +optional
	ActiveSchedule bool `json:"activeSchedule,omitempty"`
	// Window tells how long scheduled and activeSchedule are so; null if no Schedule selects the
	// cluster. A Muster addition.
	// +optional
	Window *ClusterWindow `json:"window,omitempty"`
	// Initialization is the state of spec.initGates; null if the Cluster never had any. A Muster
	// addition.
	// +optional
	Initialization *ClusterInitialization `json:"initialization,omitempty"`
	// History lists the last changes in the life of the member: joined, lost, back, cordoned, updated,
	// revoked. Only the hub writes it. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxItems=40
	History []clusterv1beta1.HistoryEntry `json:"history,omitempty"`
}

// ClusterWindow is the current state of a Cluster's windows, open or closed.
type ClusterWindow struct {
	// Since is the time when the hub opened or closed the window.
	// +optional
	Since metav1.Time `json:"since,omitempty"`
	// Opens is the start of the next window while it is closed; null while it is open, or if no
	// window follows.
	// +optional
	// +nullable
	Opens *metav1.Time `json:"opens,omitempty"`
}

// ImportStatus is the hub's note of the last import. From it the hub decides about another one.
type ImportStatus struct {
	// Time of the import.
	// +optional
	Time metav1.Time `json:"time,omitempty"`
	// ClusterID is the UID of the cluster's namespace kube-system.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// Namespace of the agent downstream.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// SecretVersion is the resource version of the kubeconfig Secret at the import.
	// +optional
	SecretVersion string `json:"secretVersion,omitempty"`
	// SecretHash is the digest of that Secret's content.
	// +optional
	SecretHash string `json:"secretHash,omitempty"`
	// SettingsHash is the digest of the agent's settings at the installation.
	// +optional
	SettingsHash string `json:"settingsHash,omitempty"`
	// APIServerURL of that Secret overrides the hub's settings for this cluster; empty if the Secret
	// has none.
	// +optional
	APIServerURL string `json:"apiServerURL,omitempty"`
	// APIServerCA of that Secret, likewise.
	// +optional
	APIServerCA string `json:"apiServerCA,omitempty"`
}

// ClusterDisplay holds the columns of `kubectl get clusters`.
type ClusterDisplay struct {
	// ReadyBundles is `ready/desired`.
	// +optional
	ReadyBundles string `json:"readyBundles,omitempty"`
	// ReadyNodes is `ready/total`.
	// +optional
	ReadyNodes string `json:"readyNodes,omitempty"`
	// SampleNode is the name of a node, a ready one if there is any.
	// +optional
	SampleNode string `json:"sampleNode,omitempty"`
	// State is a bundle state, or WaitCheckIn before the agent's first heartbeat.
	// +optional
	State string `json:"state,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}
