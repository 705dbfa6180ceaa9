package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/api/limits"
)

// BundleDeployment is the deployment of one Bundle to one Cluster. It is in the member namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=bundledeployments
// +kubebuilder:printcolumn:name="Deployed",type=string,JSONPath=`.status.display.deployed`
// +kubebuilder:printcolumn:name="Monitored",type=string,JSONPath=`.status.display.monitored`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type BundleDeployment struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec BundleDeploymentSpec `json:"spec,omitempty"`
	// status keeps every field that an upstream agent writes, known or not.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status BundleDeploymentStatus `json:"status,omitempty"`
}

// BundleDeploymentSpec is the desired state of a BundleDeployment. The hub writes it.
type BundleDeploymentSpec struct {
	// paused stops changes by the agent to this deployment.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// stagedOptions are the Bundle's current options; the rollout copies them to options.
	// +optional
	StagedOptions BundleDeploymentOptions `json:"stagedOptions,omitempty"`
	// stagedDeploymentID is the deployment ID of the Bundle's current content and options.
	// +optional
	// +nullable
	StagedDeploymentID limits.Name `json:"stagedDeploymentID,omitempty"`
	// options are the options of the deployment. Its Helm values are in the Secret with the name of
	// the BundleDeployment.
	// +optional
	Options BundleDeploymentOptions `json:"options,omitempty"`
	// deploymentID identifies what the agent deploys: the name of a Content, `:`, and the hash of the
	// options.
	// +optional
	// +nullable
	DeploymentID limits.Name `json:"deploymentID,omitempty"`
	// dependsOn lists the Bundles that must be in an accepted state on this Cluster before this one is
	// deployed.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	DependsOn []BundleRef `json:"dependsOn,omitempty"`
	// correctDrift undoes changes made downstream.
	// +optional
	// +nullable
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`
	// ociContents is true if the resources are in a registry instead of a Content.
	// +optional
	OCIContents bool `json:"ociContents,omitempty"`
	// helmChartOptions is set by a HelmOp.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	HelmChartOptions *runtime.RawExtension `json:"helmChartOptions,omitempty"`
	// valuesHash is the hash of the values in the Secret with the name of the BundleDeployment. Empty
	// without such a Secret.
	// +optional
	// +nullable
	ValuesHash limits.Name `json:"valuesHash,omitempty"`
	// downstreamResourcesGeneration changes with each change of the resources to copy downstream.
	// +optional
	DownstreamResourcesGeneration int64 `json:"downstreamResourcesGeneration,omitempty"`
	// offSchedule is true outside the windows of a Schedule; the agent then changes nothing.
	// +optional
	OffSchedule bool `json:"offSchedule,omitempty"`
	// waitingForValues is true until the Secret with the values is written; the agent then changes
	// nothing.
	// +optional
	WaitingForValues bool `json:"waitingForValues,omitempty"`
}

// BundleDeploymentStatus is the observed state of a BundleDeployment. The agent writes it, except
// display. The hub shows it, and uses it for the rollout and for nothing else. Its maxima are far
// above the needs of agents, and do not keep the object small. An agent of Rancher Fleet lists
// every resource of a release, and patches as long as an object. etcd limits the object to 1.5 MiB.
type BundleDeploymentStatus struct {
	// conditions: Installed, Deployed, Monitored, Ready. Deployed is False after a failed deployment,
	// and Unknown while it is under way.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=32
	Conditions []Condition `json:"conditions,omitempty"`
	// appliedDeploymentID is the last deployed deployment ID.
	// +optional
	// +nullable
	AppliedDeploymentID limits.Name `json:"appliedDeploymentID,omitempty"`
	// release is the Helm release on the member, as `namespace/name:version`.
	// +optional
	// +nullable
	Release limits.Line `json:"release,omitempty"`
	// ready is true if all resources are ready.
	// +optional
	// +nullable
	Ready bool `json:"ready,omitempty"`
	// nonModified is true if no resource was changed downstream.
	// +optional
	// +nullable
	NonModified bool `json:"nonModified,omitempty"`
	// nonReadyStatus names resources that are not ready.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=32
	NonReadyStatus []NonReadyStatus `json:"nonReadyStatus,omitempty"`
	// modifiedStatus names resources that were changed downstream.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=32
	ModifiedStatus []ModifiedStatus `json:"modifiedStatus,omitempty"`
	// incompleteState is true if the two lists are truncated.
	// +optional
	// +nullable
	IncompleteState bool `json:"incompleteState,omitempty"`
	// display holds the columns of `kubectl get`, computed from the rest of the status. Muster's
	// agent writes it with its report. The hub writes it for other agents, and corrects it.
	// +optional
	// +nullable
	Display BundleDeploymentDisplay `json:"display,omitempty"`
	// syncGeneration is the value of options.forceSyncGeneration at the last deployment.
	// +optional
	// +nullable
	SyncGeneration *int64 `json:"syncGeneration,omitempty"`
	// resources lists the resources of the deployment.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=8192
	Resources []DeployedResource `json:"resources,omitempty"`
	// resourceCounts counts the resources by state.
	// +optional
	// +nullable
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// downstreamResourcesGeneration is the value of the spec at the last copy.
	// +optional
	// +nullable
	DownstreamResourcesGeneration *int64 `json:"downstreamResourcesGeneration,omitempty"`
}

// BundleDeploymentDisplay holds the columns of `kubectl get bundledeployments`.
type BundleDeploymentDisplay struct {
	// deployed is the status of the condition Deployed, with its message if there is one.
	// +optional
	// +nullable
	Deployed limits.Message `json:"deployed,omitempty"`
	// monitored is the status of the condition Monitored, with its message if there is one.
	// +optional
	// +nullable
	Monitored limits.Message `json:"monitored,omitempty"`
	// state is the bundle state, such as Ready or NotReady.
	// +optional
	// +nullable
	State limits.Name `json:"state,omitempty"`
}

// DeployedResource is a resource of a release.
type DeployedResource struct {
	// kind is the kind of the resource.
	// +optional
	// +nullable
	Kind limits.Name `json:"kind,omitempty"`
	// apiVersion is the API version of the resource.
	// +optional
	// +nullable
	APIVersion limits.Name `json:"apiVersion,omitempty"`
	// namespace is the namespace of the resource.
	// +optional
	// +nullable
	Namespace limits.Name `json:"namespace,omitempty"`
	// name is the name of the resource.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// createdAt is the RFC 3339 time of the resource's creation.
	// +optional
	// +nullable
	CreatedAt limits.Name `json:"createdAt,omitempty"`
}

// BundleDeploymentList is a list of BundleDeployments.
//
// +kubebuilder:object:root=true
type BundleDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BundleDeployment `json:"items"`
}
