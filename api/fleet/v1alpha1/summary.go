package v1alpha1

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/api/limits"
)

// BundleState is how a Bundle stands on one Cluster, or at worst on several.
//
// +kubebuilder:validation:MaxLength=63
type BundleState string

// The bundle states, the worst first.
const (
	// StateErrApplied is a deployment that failed.
	StateErrApplied BundleState = "ErrApplied"
	// StateWaitApplied is a deployment that the agent has not carried out yet.
	StateWaitApplied BundleState = "WaitApplied"
	// StateModified is a deployment whose resources were changed downstream.
	StateModified BundleState = "Modified"
	// StateOutOfSync is a deployment that has not been told of the newest content, though nothing holds it back.
	StateOutOfSync BundleState = "OutOfSync"
	// StatePending is a deployment that the rollout holds back.
	StatePending BundleState = "Pending"
	// StateNotReady is a deployment that is applied and whose resources are not all ready.
	StateNotReady BundleState = "NotReady"
	// StateReady is a deployment as it should be.
	StateReady BundleState = "Ready"
)

// BundleSummary counts BundleDeployments by state.
type BundleSummary struct {
	// NotReady deployments are applied but some of their resources are not ready.
	// +optional
	NotReady int `json:"notReady,omitempty"`
	// WaitApplied deployments wait to be applied.
	// +optional
	WaitApplied int `json:"waitApplied,omitempty"`
	// ErrApplied deployments failed to apply.
	// +optional
	ErrApplied int `json:"errApplied,omitempty"`
	// OutOfSync deployments have not been told of the newest content.
	// +optional
	OutOfSync int `json:"outOfSync,omitempty"`
	// Modified deployments were changed downstream.
	// +optional
	Modified int `json:"modified,omitempty"`
	// Ready deployments are as they should be.
	// +optional
	Ready int `json:"ready"`
	// Pending deployments are held back by the rollout.
	// +optional
	Pending int `json:"pending,omitempty"`
	// DesiredReady is the number of all deployments.
	// +optional
	DesiredReady int `json:"desiredReady"`
	// NonReadyResources names at most ten that are not ready.
	// +optional
	// +nullable
	NonReadyResources []NonReadyResource `json:"nonReadyResources,omitempty"`
}

// NonReadyResource is a Bundle or a cluster that is not ready.
type NonReadyResource struct {
	// Name of it.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// State it is in.
	// +optional
	// +nullable
	State BundleState `json:"bundleState,omitempty"`
	// Message that says why.
	// +optional
	// +nullable
	Message string `json:"message,omitempty"`
	// ModifiedStatus names resources that were changed downstream.
	// +optional
	// +nullable
	ModifiedStatus []ModifiedStatus `json:"modifiedStatus,omitempty"`
	// NonReadyStatus names resources that are not ready.
	// +optional
	// +nullable
	NonReadyStatus []NonReadyStatus `json:"nonReadyStatus,omitempty"`
}

// ModifiedStatus is a resource that was changed downstream.
type ModifiedStatus struct {
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
	// Create (`missing`) says that the resource is gone downstream.
	// +optional
	// +nullable
	Create bool `json:"missing,omitempty"`
	// Exist says that the resource is there and belongs to something else.
	// +optional
	// +nullable
	Exist bool `json:"exist,omitempty"`
	// Delete says that the resource is there and should not be.
	// +optional
	// +nullable
	Delete bool `json:"delete,omitempty"`
	// Patch is what would undo the change, as JSON.
	// +optional
	// +nullable
	Patch limits.Document `json:"patch,omitempty"`
}

// NonReadyStatus is a resource that is not ready.
type NonReadyStatus struct {
	// UID of the resource.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=253
	UID types.UID `json:"uid,omitempty"`
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
	// Summary says why.
	// +optional
	// +nullable
	Summary ReadinessSummary `json:"summary,omitempty"`
}

// ReadinessSummary says how a resource is.
type ReadinessSummary struct {
	// State is a word for it.
	// +optional
	// +nullable
	State limits.Name `json:"state,omitempty"`
	// Error says that it will not become ready by itself.
	// +optional
	// +nullable
	Error bool `json:"error,omitempty"`
	// Transitioning says that it is on its way.
	// +optional
	// +nullable
	Transitioning bool `json:"transitioning,omitempty"`
	// Message says why.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=64
	Message []limits.Message `json:"message,omitempty"`
}

// ResourceCounts counts deployed resources by state.
type ResourceCounts struct {
	// Ready resources.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Ready int `json:"ready"`
	// DesiredReady is the number of all resources.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	DesiredReady int `json:"desiredReady"`
	// WaitApplied resources.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	WaitApplied int `json:"waitApplied"`
	// Modified resources.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Modified int `json:"modified"`
	// Orphaned resources.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Orphaned int `json:"orphaned"`
	// Missing resources.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Missing int `json:"missing"`
	// Unknown resources.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Unknown int `json:"unknown"`
	// NotReady resources.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	NotReady int `json:"notReady"`
}
