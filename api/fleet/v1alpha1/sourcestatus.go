package v1alpha1

import "github.com/muster-fleet/muster/api/limits"

// SourceResources is the part of the status of GitRepos and HelmOps about what their Bundles have
// deployed. Agents report it.
type SourceResources struct {
	// DesiredReadyClusters is the number of Clusters that the Bundles select.
	// +optional
	DesiredReadyClusters int `json:"desiredReadyClusters,omitempty"`
	// ReadyClusters is the number of Clusters with all their Bundles ready.
	// +optional
	ReadyClusters int `json:"readyClusters,omitempty"`
	// ResourceCounts counts the deployed resources by state, each once per Cluster.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// PerClusterResourceCounts are the same counts of at most 200 Clusters, by
	// `namespace/name`. Clusters with resources that are not ready come first.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxProperties=16384
	PerClusterResourceCounts map[string]ResourceCounts `json:"perClusterResourceCounts,omitempty"`
	// Resources lists at most 500 deployed resources. Those that are not ready come first.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=16384
	Resources []SourceResource `json:"resources,omitempty"`
	// ResourceErrors says what the list of resources leaves out.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=64
	ResourceErrors []limits.Message `json:"resourceErrors,omitempty"`
}

// SourceResource is a resource that Bundles of a GitRepo or HelmOp have deployed.
type SourceResource struct {
	// APIVersion of the resource.
	// +optional
	// +nullable
	APIVersion limits.Name `json:"apiVersion,omitempty"`
	// Kind of the resource.
	// +optional
	// +nullable
	Kind limits.Name `json:"kind,omitempty"`
	// Type is the kind in small letters, after the group and a dot if there is a group, as in
	// `apps.deployment`.
	// +optional
	// +nullable
	Type limits.Line `json:"type,omitempty"`
	// ID is `namespace/name`, or the name.
	// +optional
	// +nullable
	ID limits.Line `json:"id,omitempty"`
	// Namespace of the resource.
	// +optional
	// +nullable
	Namespace limits.Name `json:"namespace,omitempty"`
	// Name of the resource.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// IncompleteState is true if an agent reported more unready resources than the hub keeps.
	// +optional
	IncompleteState bool `json:"incompleteState,omitempty"`
	// State is the worst state on a Cluster.
	// +optional
	// +nullable
	State limits.Name `json:"state,omitempty"`
	// Error is true if the resource does not become ready by itself on a Cluster.
	// +optional
	Error bool `json:"error,omitempty"`
	// Transitioning is true if the resource is about to become ready on a Cluster.
	// +optional
	Transitioning bool `json:"transitioning,omitempty"`
	// Message is the message of the worst state.
	// +optional
	// +nullable
	Message limits.Message `json:"message,omitempty"`
	// PerClusterState lists Clusters by the state of the resource, at most 20 for a state.
	// +optional
	// +nullable
	PerClusterState *PerClusterState `json:"perClusterState,omitempty"`
}

// PerClusterState lists Clusters, as `namespace/name`, by the state of a resource.
type PerClusterState struct {
	// Ready: on these Clusters the resource is ready.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Ready []limits.Line `json:"ready,omitempty"`
	// WaitApplied: the resource waits to be applied.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	WaitApplied []limits.Line `json:"waitApplied,omitempty"`
	// Pending: the deployment is held back.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Pending []limits.Line `json:"pending,omitempty"`
	// ErrApplied: the deployment failed.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	ErrApplied []limits.Line `json:"errApplied,omitempty"`
	// NotReady: the resource is not ready.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	NotReady []limits.Line `json:"notReady,omitempty"`
	// Missing: the resource was deleted downstream.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Missing []limits.Line `json:"missing,omitempty"`
	// Unknown: the agent is gone.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Unknown []limits.Line `json:"unknown,omitempty"`
	// Orphaned: the resource is left over from an earlier deployment.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Orphaned []limits.Line `json:"orphaned,omitempty"`
	// Modified: the resource was changed downstream.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Modified []limits.Line `json:"modified,omitempty"`
}
