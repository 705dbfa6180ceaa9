package v1alpha1

import "github.com/muster-fleet/muster/api/limits"

// SourceResources is a part of the status of GitRepos and HelmOps: the deployed resources of their
// Bundles, as reported by the agents.
type SourceResources struct {
	// desiredReadyClusters is the number of Clusters selected by the Bundles.
	// +optional
	DesiredReadyClusters int `json:"desiredReadyClusters,omitempty"`
	// readyClusters is the number of Clusters where all Bundles are ready.
	// +optional
	ReadyClusters int `json:"readyClusters,omitempty"`
	// resourceCounts counts the deployed resources by state. A resource on several Clusters counts
	// once for each.
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// perClusterResourceCounts has these counts for each Cluster, by `namespace/name`, for at most 200
	// Clusters. Clusters with unready resources come first.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxProperties=16384
	PerClusterResourceCounts map[string]ResourceCounts `json:"perClusterResourceCounts,omitempty"`
	// resources lists at most 500 deployed resources. Unready resources come first.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=16384
	Resources []SourceResource `json:"resources,omitempty"`
	// resourceErrors describes resources missing from the list.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=64
	ResourceErrors []limits.Message `json:"resourceErrors,omitempty"`
}

// SourceResource is a deployed resource of a GitRepo or HelmOp.
type SourceResource struct {
	// apiVersion is the API version of the resource.
	// +optional
	// +nullable
	APIVersion limits.Name `json:"apiVersion,omitempty"`
	// kind is the kind of the resource.
	// +optional
	// +nullable
	Kind limits.Name `json:"kind,omitempty"`
	// type is the kind in lower case, with the group and a dot before it, as in `apps.deployment`.
	// Kinds of the core group have no prefix.
	// +optional
	// +nullable
	Type limits.Line `json:"type,omitempty"`
	// id is `namespace/name`, or the name.
	// +optional
	// +nullable
	ID limits.Line `json:"id,omitempty"`
	// namespace is the namespace of the resource.
	// +optional
	// +nullable
	Namespace limits.Name `json:"namespace,omitempty"`
	// name is the name of the resource.
	// +optional
	// +nullable
	Name limits.Name `json:"name,omitempty"`
	// incompleteState is true if an agent reported more unready resources than the hub keeps.
	// +optional
	IncompleteState bool `json:"incompleteState,omitempty"`
	// state is the worst state of the resource on any Cluster.
	// +optional
	// +nullable
	State limits.Name `json:"state,omitempty"`
	// error is true if, on any Cluster, the resource does not become ready by itself.
	// +optional
	Error bool `json:"error,omitempty"`
	// transitioning is true if, on any Cluster, the resource is about to become ready.
	// +optional
	Transitioning bool `json:"transitioning,omitempty"`
	// message is the message of the worst state.
	// +optional
	// +nullable
	Message limits.Message `json:"message,omitempty"`
	// perClusterState lists the Clusters by the state of the resource, at most 20 per state.
	// +optional
	// +nullable
	PerClusterState *PerClusterState `json:"perClusterState,omitempty"`
}

// PerClusterState lists Clusters, as `namespace/name`, by the state of a resource.
type PerClusterState struct {
	// ready lists the Clusters with a ready resource.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Ready []limits.Line `json:"ready,omitempty"`
	// waitApplied lists the Clusters where the resource waits to be applied.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	WaitApplied []limits.Line `json:"waitApplied,omitempty"`
	// pending lists the Clusters where the deployment is held back.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Pending []limits.Line `json:"pending,omitempty"`
	// errApplied lists the Clusters where the deployment failed.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	ErrApplied []limits.Line `json:"errApplied,omitempty"`
	// notReady lists the Clusters where the resource is not ready.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	NotReady []limits.Line `json:"notReady,omitempty"`
	// missing lists the Clusters where the resource was deleted.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Missing []limits.Line `json:"missing,omitempty"`
	// unknown lists the Clusters without an agent.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Unknown []limits.Line `json:"unknown,omitempty"`
	// orphaned lists the Clusters where the resource is left over from an earlier deployment.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Orphaned []limits.Line `json:"orphaned,omitempty"`
	// modified lists the Clusters where the resource was changed.
	// +optional
	// +kubebuilder:validation:MaxItems=16384
	Modified []limits.Line `json:"modified,omitempty"`
}
