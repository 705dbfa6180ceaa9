package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-fleet/muster/api/limits"
)

// BundleDeployment is one Bundle on one Cluster, in the member namespace, under the Bundle's name.
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
	// Status keeps every field that an upstream agent writes, known or not.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status BundleDeploymentStatus `json:"status,omitempty"`
}

// BundleDeploymentSpec is written by the hub.
type BundleDeploymentSpec struct {
	// Paused stops the agent's work on this deployment.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// StagedOptions are the Bundle's current options; the rollout copies them to options.
	// +optional
	StagedOptions BundleDeploymentOptions `json:"stagedOptions,omitempty"`
	// StagedDeploymentID is the deployment ID of the Bundle's current content and options.
	// +optional
	// +nullable
	StagedDeploymentID limits.Name `json:"stagedDeploymentID,omitempty"`
	// Options are the options for the agent's deployment. Their values are in the Secret of the
	// BundleDeployment's name.
	// +optional
	Options BundleDeploymentOptions `json:"options,omitempty"`
	// DeploymentID identifies the deployed content: the name of a Content, `:`, and the hash of the
	// options.
	// +optional
	// +nullable
	DeploymentID limits.Name `json:"deploymentID,omitempty"`
	// DependsOn lists Bundles that this Cluster must have first.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	DependsOn []BundleRef `json:"dependsOn,omitempty"`
	// CorrectDrift undoes changes made downstream.
	// +optional
	// +nullable
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`
	// OCIContents marks resources in a registry instead of a Content.
	// +optional
	OCIContents bool `json:"ociContents,omitempty"`
	// HelmChartOptions is set by a HelmOp.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	HelmChartOptions *runtime.RawExtension `json:"helmChartOptions,omitempty"`
	// ValuesHash is the hash of the values in the Secret of the BundleDeployment's name; empty if
	// there is no such Secret.
	// +optional
	// +nullable
	ValuesHash limits.Name `json:"valuesHash,omitempty"`
	// DownstreamResourcesGeneration changes with the resources to copy downstream.
	// +optional
	DownstreamResourcesGeneration int64 `json:"downstreamResourcesGeneration,omitempty"`
	// OffSchedule stops the agent's work outside of a Schedule.
	// +optional
	OffSchedule bool `json:"offSchedule,omitempty"`
	// WaitingForValues stops the agent's work until the values Secret is written.
	// +optional
	WaitingForValues bool `json:"waitingForValues,omitempty"`
}

// BundleDeploymentStatus is written by the agent, except display. The hub shows it and bases the
// rollout on it, and trusts nothing else in it. Its maxima are well above the needs of agents, and
// do not keep it small. An agent of Rancher Fleet lists every resource of a release, and patches as
// long as an object. The limit is the 1.5 MiB that etcd stores.
type BundleDeploymentStatus struct {
	// Conditions: Installed, Deployed, Monitored, Ready. Deployed is False after a failed deployment,
	// and Unknown while it is under way.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=32
	Conditions []Condition `json:"conditions,omitempty"`
	// AppliedDeploymentID is the last deployed deployment ID.
	// +optional
	// +nullable
	AppliedDeploymentID limits.Name `json:"appliedDeploymentID,omitempty"`
	// Release is the Helm release downstream, as `namespace/name:version`.
	// +optional
	// +nullable
	Release limits.Line `json:"release,omitempty"`
	// Ready is true if all resources are ready.
	// +optional
	// +nullable
	Ready bool `json:"ready,omitempty"`
	// NonModified is true if no resource was changed downstream.
	// +optional
	// +nullable
	NonModified bool `json:"nonModified,omitempty"`
	// NonReadyStatus names resources that are not ready.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=32
	NonReadyStatus []NonReadyStatus `json:"nonReadyStatus,omitempty"`
	// ModifiedStatus names resources that were changed downstream.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=32
	ModifiedStatus []ModifiedStatus `json:"modifiedStatus,omitempty"`
	// IncompleteState is true if the two lists are truncated.
	// +optional
	// +nullable
	IncompleteState bool `json:"incompleteState,omitempty"`
	// Display holds the columns of `kubectl get`. The hub computes it from the rest of the status.
	// +optional
	// +nullable
	Display BundleDeploymentDisplay `json:"display,omitempty"`
	// SyncGeneration is options.forceSyncGeneration of the last deployment.
	// +optional
	// +nullable
	SyncGeneration *int64 `json:"syncGeneration,omitempty"`
	// Resources of the deployment.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=8192
	Resources []DeployedResource `json:"resources,omitempty"`
	// ResourceCounts counts them by state.
	// +optional
	// +nullable
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// DownstreamResourcesGeneration is the spec's value at the last copy.
	// +optional
	// +nullable
	DownstreamResourcesGeneration *int64 `json:"downstreamResourcesGeneration,omitempty"`
}

// BundleDeploymentDisplay holds the columns of `kubectl get bundledeployments`.
type BundleDeploymentDisplay struct {
	// Deployed is the status of the condition Deployed, with its message if there is one.
	// +optional
	// +nullable
	Deployed limits.Message `json:"deployed,omitempty"`
	// Monitored is the status of the condition Monitored, with its message if there is one.
	// +optional
	// +nullable
	Monitored limits.Message `json:"monitored,omitempty"`
	// State is a bundle state.
	// +optional
	// +nullable
	State limits.Name `json:"state,omitempty"`
}

// DeployedResource is a resource of a release.
type DeployedResource struct {
	// Kind of the resource.
	// +optional
	// +nullable
	Kind limits.Name `json:"kind,omitempty"`
	// APIVersion of the resource.
	// +optional
	// +nullable
	APIVersion limits.Name `json:"apiVersion,omitempty"`
	// Namespace of the resource.
	// +optional
	// +nullable
	Namespace limits.Name `json:"namespace,omitempty"`
	// Name of the resource.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// CreatedAt is the RFC 3339 time of the resource's creation.
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
