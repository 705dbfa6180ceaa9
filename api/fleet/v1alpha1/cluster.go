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

// ClusterSpec is the desired state of a Cluster. Users write it.
type ClusterSpec struct {
	// paused stops the rollout of BundleDeployments to this cluster.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// clientID is an opaque identity. An agent presents it to become this Cluster, so it should not be
	// guessable. Default with kubeConfigSecret: the UID of this object.
	// +optional
	// +nullable
	ClientID limits.Name `json:"clientID,omitempty"`
	// kubeConfigSecret names a Secret with a kubeconfig under the key `value`. If it is set, the hub
	// imports the cluster.
	// +optional
	// +nullable
	KubeConfigSecret limits.Name `json:"kubeConfigSecret,omitempty"`
	// kubeConfigSecretNamespace is the namespace of that Secret. Default: the namespace of the
	// Cluster.
	// +optional
	// +nullable
	KubeConfigSecretNamespace limits.Name `json:"kubeConfigSecretNamespace,omitempty"`
	// reconnect lets a native agent rejoin without a registration token after its credential has
	// expired. The agent must prove that it holds the key pinned to the Cluster. Default true. A
	// Muster addition.
	// +optional
	// +nullable
	Reconnect *bool `json:"reconnect,omitempty"`
	// heartbeatPeriodSeconds is the period of the heartbeats of Muster's agent. Default: between 10 s
	// and a minute, longer with more members. A Muster addition.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	HeartbeatPeriodSeconds *int32 `json:"heartbeatPeriodSeconds,omitempty"`
	// redeployAgentGeneration makes the hub import the cluster again after each change of its value.
	// +optional
	RedeployAgentGeneration int64 `json:"redeployAgentGeneration,omitempty"`
	// agentEnvVars are added to the environment of the agent.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	AgentEnvVars []corev1.EnvVar `json:"agentEnvVars,omitempty"`
	// agentNamespace is the namespace of the agent on the member. Default: the name of the hub's
	// system namespace.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	AgentNamespace string `json:"agentNamespace,omitempty"`
	// privateRepoURL is the registry of the agent's image, as a prefix.
	// +optional
	// +nullable
	PrivateRepoURL limits.Line `json:"privateRepoURL,omitempty"`
	// templateValues are available to Bundles as `.ClusterValues`.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	TemplateValues *runtime.RawExtension `json:"templateValues,omitempty"`
	// agentTolerations are the tolerations of the agent's pod.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	AgentTolerations []corev1.Toleration `json:"agentTolerations,omitempty"`
	// agentAffinity is the affinity of the agent's pod.
	// +optional
	// +nullable
	AgentAffinity *corev1.Affinity `json:"agentAffinity,omitempty"`
	// agentResources are the resources of the agent's container.
	// +optional
	// +nullable
	AgentResources *corev1.ResourceRequirements `json:"agentResources,omitempty"`
	// hostNetwork runs the agent on the host's network.
	// +optional
	// +nullable
	HostNetwork *bool `json:"hostNetwork,omitempty"`
	// agentSchedulingCustomization sets a PriorityClass and a PodDisruptionBudget for the agent.
	// +optional
	// +nullable
	AgentSchedulingCustomization *AgentSchedulingCustomization `json:"agentSchedulingCustomization,omitempty"`
	// agentPullSecrets name pull secrets on the member. With null, the hub copies its own to it.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=256
	AgentPullSecrets *[]corev1.LocalObjectReference `json:"agentPullSecrets,omitempty"`
	// initGates hold back all deliveries to a new cluster until it is set up. They open one after the
	// other, and stay open. Until the last one opens, the hub delivers only the Bundle of the next
	// gate. A registration token can set them. None by default. A Muster addition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	InitGates []InitGate `json:"initGates,omitempty"`
}

// ClusterStatus is the observed state of a Cluster. The hub writes it, except agent: upstream
// agents patch that field.
type ClusterStatus struct {
	// conditions: Ready, Processed, LabelsAccepted, DeliveryApproved, Supported, Pruned,
	// HubConfigured, Imported, AgentUpToDate, Reconciled, Cloned, Initialized.
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// namespace is the member namespace on the hub.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// summary rolls up the BundleDeployments of the cluster.
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// resourceCounts rolls up the deployed resources.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// readyGitRepos counts the ready GitRepos.
	// +optional
	ReadyGitRepos int `json:"readyGitRepos"`
	// desiredReadyGitRepos counts the GitRepos targeting the cluster.
	// +optional
	DesiredReadyGitRepos int `json:"desiredReadyGitRepos"`
	// readyHelmOps counts the ready HelmOps.
	// +optional
	ReadyHelmOps int `json:"readyHelmOps"`
	// desiredReadyHelmOps counts the HelmOps targeting the cluster.
	// +optional
	DesiredReadyHelmOps int `json:"desiredReadyHelmOps"`
	// properties are the facts of the member by name, such as muster/region. Only agents of Muster
	// report them. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 253)",message="a key has more than 253 characters"
	Properties map[string]clusterv1beta1.PropertyValue `json:"properties,omitempty"`
	// agentEnvVarsHash is the hash of the spec field last applied downstream.
	// +optional
	AgentEnvVarsHash string `json:"agentEnvVarsHash,omitempty"`
	// agentPrivateRepoURL is the spec value last applied downstream.
	// +optional
	AgentPrivateRepoURL string `json:"agentPrivateRepoURL,omitempty"`
	// agentHostNetwork is the spec value last applied downstream.
	// +optional
	AgentHostNetwork bool `json:"agentHostNetwork,omitempty"`
	// agentAffinityHash is the hash of the spec field last applied downstream.
	// +optional
	AgentAffinityHash string `json:"agentAffinityHash,omitempty"`
	// agentResourcesHash is the hash of the spec field last applied downstream.
	// +optional
	AgentResourcesHash string `json:"agentResourcesHash,omitempty"`
	// agentTolerationsHash is the hash of the spec field last applied downstream.
	// +optional
	AgentTolerationsHash string `json:"agentTolerationsHash,omitempty"`
	// agentSchedulingCustomizationHash is the hash of the spec field last applied downstream.
	// +optional
	AgentSchedulingCustomizationHash string `json:"agentSchedulingCustomizationHash,omitempty"`
	// agentDeployedGeneration is the value of spec.redeployAgentGeneration at the last successful
	// import. Null before the first import.
	// +optional
	// +nullable
	AgentDeployedGeneration *int64 `json:"agentDeployedGeneration,omitempty"`
	// agentMigrated is an upstream migration marker.
	// +optional
	AgentMigrated bool `json:"agentMigrated,omitempty"`
	// agentNamespaceMigrated is an upstream migration marker.
	// +optional
	AgentNamespaceMigrated bool `json:"agentNamespaceMigrated,omitempty"`
	// cattleNamespaceMigrated is an upstream migration marker.
	// +optional
	CattleNamespaceMigrated bool `json:"cattleNamespaceMigrated,omitempty"`
	// agentConfigChanged is true if the hub must import the cluster again.
	// +optional
	AgentConfigChanged bool `json:"agentConfigChanged,omitempty"`
	// agentState is the state of the agent: Awaited, Absent, Online, Lost, Left, Revoked or
	// WithoutNamespace. An Absent agent has sent no heartbeat, and a message gives the cause. An agent
	// WithoutNamespace has no member namespace. Empty under another manager. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	AgentState string `json:"agentState,omitempty"`
	// apiServerURL is the hub's URL in the agent's report. Agents of Rancher Fleet report none.
	// +optional
	APIServerURL string `json:"apiServerURL,omitempty"`
	// apiServerCAHash is the SHA-224 of the hub's CA, as JSON bytes, in the agent's report.
	// +optional
	APIServerCAHash string `json:"apiServerCAHash,omitempty"`
	// agentTLSMode is the TLS mode that the agent reports.
	// +optional
	AgentTLSMode string `json:"agentTLSMode,omitempty"`
	// garbageCollectionInterval is the interval that the hub last sent to the agent.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="garbageCollectionInterval must be 0 or a Go duration such as 240h or 90m, at most 2562047h; the units are ns, us, µs, ms, s, m and h, there is none for days"
	GarbageCollectionInterval *metav1.Duration `json:"garbageCollectionInterval,omitempty"`
	// import is the result of the last import by kubeConfigSecret. Null before the first import. A
	// Muster addition.
	// +optional
	Import *ImportStatus `json:"import,omitempty"`
	// display holds the columns of `kubectl get`.
	// +optional
	Display ClusterDisplay `json:"display,omitempty"`
	// agent is the status of the agent.
	// +optional
	Agent AgentStatus `json:"agent,omitempty"`
	// credential is the status of the agent's credential. Absent before the first heartbeat. A Muster
	// addition.
	// +optional
	Credential *CredentialStatus `json:"credential,omitempty"`
	// scheduled is true if a Schedule selects the cluster.
	// +optional
	Scheduled bool `json:"scheduled,omitempty"`
	// activeSchedule is true while a window of such a Schedule is open.
	// +optional
	ActiveSchedule bool `json:"activeSchedule,omitempty"`
	// window has the start of the current state of activeSchedule, and the next window. Null if no
	// Schedule selects the cluster. A Muster addition.
	// +optional
	Window *ClusterWindow `json:"window,omitempty"`
	// initialization is the state of spec.initGates; null if the Cluster never had any. A Muster
	// addition.
	// +optional
	Initialization *ClusterInitialization `json:"initialization,omitempty"`
	// history lists the last events in the life of the member, such as Joined, Lost, Cordoned or
	// Revoked. Only the hub writes it. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxItems=40
	History []clusterv1beta1.HistoryEntry `json:"history,omitempty"`
	// heartbeatDelay has the delays of the last heartbeats by hour. The hub writes it with the rest of
	// the status. No decision depends on it. Not set for upstream agents. A Muster addition.
	// +optional
	HeartbeatDelay *clusterv1beta1.HeartbeatDelay `json:"heartbeatDelay,omitempty"`
}

// ClusterWindow is the state of a Cluster's windows.
type ClusterWindow struct {
	// since is the time when the hub last opened or closed a window.
	// +optional
	Since metav1.Time `json:"since,omitempty"`
	// opens is the start of the next window. Null while a window is open, or if no window follows.
	// +optional
	// +nullable
	Opens *metav1.Time `json:"opens,omitempty"`
}

// ImportStatus describes the last import. From it the hub decides whether to import again.
type ImportStatus struct {
	// time is the time of the import.
	// +optional
	Time metav1.Time `json:"time,omitempty"`
	// clusterID is the UID of the cluster's namespace kube-system.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// namespace is the namespace of the agent on the member.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// secretVersion is the resource version of the kubeconfig Secret at the import.
	// +optional
	SecretVersion string `json:"secretVersion,omitempty"`
	// secretHash is the digest of that Secret's content.
	// +optional
	SecretHash string `json:"secretHash,omitempty"`
	// settingsHash is the digest of the agent's settings at the installation.
	// +optional
	SettingsHash string `json:"settingsHash,omitempty"`
	// apiServerURL is the apiServerURL is the hub's address in that Secret; it overrides the hub's
	// settings.
	// +optional
	APIServerURL string `json:"apiServerURL,omitempty"`
	// apiServerCA is the apiServerCA is the hub's CA in that Secret; it overrides the hub's settings.
	// +optional
	APIServerCA string `json:"apiServerCA,omitempty"`
}

// ClusterDisplay holds the columns of `kubectl get clusters`.
type ClusterDisplay struct {
	// readyBundles is `ready/desired`.
	// +optional
	ReadyBundles string `json:"readyBundles,omitempty"`
	// readyNodes is `ready/total`.
	// +optional
	ReadyNodes string `json:"readyNodes,omitempty"`
	// sampleNode is the name of one node, of a ready one if possible.
	// +optional
	SampleNode string `json:"sampleNode,omitempty"`
	// state is the worst state of a Bundle on the cluster, or WaitCheckIn before the agent's first
	// heartbeat.
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
