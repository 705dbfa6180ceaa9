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
	// Whatever an upstream agent writes is kept, known or not.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status BundleDeploymentStatus `json:"status,omitempty"`
}

// BundleDeploymentSpec is written by the hub.
type BundleDeploymentSpec struct {
	// Paused keeps the agent's hands off.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// StagedOptions are what the Bundle wants; they become options when the rollout lets them.
	// +optional
	StagedOptions BundleDeploymentOptions `json:"stagedOptions,omitempty"`
	// StagedDeploymentID is the deployment ID of what the Bundle wants.
	// +optional
	// +nullable
	StagedDeploymentID limits.Name `json:"stagedDeploymentID,omitempty"`
	// Options are what the agent deploys with. Their values are in the Secret of the BundleDeployment's name.
	// +optional
	Options BundleDeploymentOptions `json:"options,omitempty"`
	// DeploymentID is what the agent deploys: the name of a Content, `:`, and the hash of the options.
	// +optional
	// +nullable
	DeploymentID limits.Name `json:"deploymentID,omitempty"`
	// DependsOn are Bundles that have to be there on this Cluster first.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=1024
	DependsOn []BundleRef `json:"dependsOn,omitempty"`
	// CorrectDrift undoes changes made downstream.
	// +optional
	// +nullable
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`
	// OCIContents says that the resources are in a registry instead of a Content.
	// +optional
	OCIContents bool `json:"ociContents,omitempty"`
	// HelmChartOptions is set by a HelmOp.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	HelmChartOptions *runtime.RawExtension `json:"helmChartOptions,omitempty"`
	// ValuesHash is the hash of the values in the Secret of the BundleDeployment's name; empty if there is no such Secret.
	// +optional
	// +nullable
	ValuesHash limits.Name `json:"valuesHash,omitempty"`
	// DownstreamResourcesGeneration changes when what is to be copied downstream did.
	// +optional
	DownstreamResourcesGeneration int64 `json:"downstreamResourcesGeneration,omitempty"`
	// OffSchedule keeps the agent's hands off outside of a Schedule.
	// +optional
	OffSchedule bool `json:"offSchedule,omitempty"`
	// WaitingForValues keeps the agent's hands off until the values Secret is written.
	// +optional
	WaitingForValues bool `json:"waitingForValues,omitempty"`
}

// BundleDeploymentStatus is written by the agent, all but display. The hub shows it and decides the rollout by it, and trusts nothing else in it.
// Its maxima are well above what agents write, and do not keep it small: an agent of Rancher Fleet lists every resource of a release, and patches
// that may be as long as an object. What etcd stores, 1.5 MiB, does.
type BundleDeploymentStatus struct {
	// Conditions: Installed, Deployed, Monitored, Ready. Deployed is False if the deployment failed, and Unknown while it is under way.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=32
	Conditions []Condition `json:"conditions,omitempty"`
	// AppliedDeploymentID is the deployment ID that was deployed last.
	// +optional
	// +nullable
	AppliedDeploymentID limits.Name `json:"appliedDeploymentID,omitempty"`
	// Release is the Helm release downstream, as `namespace/name:version`.
	// +optional
	// +nullable
	Release limits.Line `json:"release,omitempty"`
	// Ready says that all resources are ready.
	// +optional
	// +nullable
	Ready bool `json:"ready,omitempty"`
	// NonModified says that no resource was changed downstream.
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
	// IncompleteState says that the two lists were cut off.
	// +optional
	// +nullable
	IncompleteState bool `json:"incompleteState,omitempty"`
	// Display is what the columns of `kubectl get` show. The hub computes it from the rest of the status.
	// +optional
	// +nullable
	Display BundleDeploymentDisplay `json:"display,omitempty"`
	// SyncGeneration is options.forceSyncGeneration of the last deployment.
	// +optional
	// +nullable
	SyncGeneration *int64 `json:"syncGeneration,omitempty"`
	// Resources that were deployed.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=8192
	Resources []DeployedResource `json:"resources,omitempty"`
	// ResourceCounts counts them by state.
	// +optional
	// +nullable
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// DownstreamResourcesGeneration is the one of the spec that was copied last.
	// +optional
	// +nullable
	DownstreamResourcesGeneration *int64 `json:"downstreamResourcesGeneration,omitempty"`
}

// BundleDeploymentDisplay is made for the columns of `kubectl get bundledeployments`.
type BundleDeploymentDisplay struct {
	// Deployed is the status of the condition Deployed, and its message if it has one.
	// +optional
	// +nullable
	Deployed limits.Message `json:"deployed,omitempty"`
	// Monitored is the status of the condition Monitored, and its message if it has one.
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
	// CreatedAt is the RFC 3339 time at which it was created.
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
