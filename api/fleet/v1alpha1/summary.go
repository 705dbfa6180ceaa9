package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

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
	State string `json:"bundleState,omitempty"`
	// Message that says why.
	// +optional
	// +nullable
	Message string `json:"message,omitempty"`
	// ModifiedStatus names resources that were changed downstream.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	ModifiedStatus []runtime.RawExtension `json:"modifiedStatus,omitempty"`
	// NonReadyStatus names resources that are not ready.
	// +optional
	// +nullable
	// +kubebuilder:pruning:PreserveUnknownFields
	NonReadyStatus []runtime.RawExtension `json:"nonReadyStatus,omitempty"`
}

// ResourceCounts counts deployed resources by state.
type ResourceCounts struct {
	// Ready resources.
	// +optional
	Ready int `json:"ready"`
	// DesiredReady is the number of all resources.
	// +optional
	DesiredReady int `json:"desiredReady"`
	// WaitApplied resources.
	// +optional
	WaitApplied int `json:"waitApplied"`
	// Modified resources.
	// +optional
	Modified int `json:"modified"`
	// Orphaned resources.
	// +optional
	Orphaned int `json:"orphaned"`
	// Missing resources.
	// +optional
	Missing int `json:"missing"`
	// Unknown resources.
	// +optional
	Unknown int `json:"unknown"`
	// NotReady resources.
	// +optional
	NotReady int `json:"notReady"`
}
