package v1alpha1

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/api/limits"
)

// BundleState is the state of a Bundle on one Cluster, or the worst on several.
//
// +kubebuilder:validation:MaxLength=63
type BundleState string

// The bundle states, the worst first.
const (
	// StateErrApplied is a failed deployment.
	StateErrApplied BundleState = "ErrApplied"
	// StateWaitApplied is a deployment not yet carried out by the agent.
	StateWaitApplied BundleState = "WaitApplied"
	// StateModified is a deployment with resources changed downstream.
	StateModified BundleState = "Modified"
	// StateOutOfSync is a deployment without the newest content, although the rollout does not hold it
	// back.
	StateOutOfSync BundleState = "OutOfSync"
	// StatePending is a deployment held back by the rollout, a pause or a Schedule.
	StatePending BundleState = "Pending"
	// StateNotReady is an applied deployment with unready resources.
	StateNotReady BundleState = "NotReady"
	// StateWaitingForDependency is a deployment that waits for another Bundle, as in Rancher Fleet
	// 0.17.
	StateWaitingForDependency BundleState = "WaitingForDependency"
	// StateReady is a deployment without a problem.
	StateReady BundleState = "Ready"
)

// The waiting states that Rancher Fleet does not have. Only conditions and counts have them. The
// fields with bundle states have Pending instead, which clients of Rancher Fleet know.
const (
	// StateOutsideWindow is a deployment that waits for a window of a Schedule.
	StateOutsideWindow BundleState = "OutsideWindow"
	// StatePaused is a deployment that waits for the end of a pause.
	StatePaused BundleState = "Paused"
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
	// OutOfSync deployments do not have the newest content yet.
	// +optional
	OutOfSync int `json:"outOfSync,omitempty"`
	// Modified deployments were changed downstream.
	// +optional
	Modified int `json:"modified,omitempty"`
	// Ready deployments have no problem.
	// +optional
	Ready int `json:"ready"`
	// Pending deployments are held back by the rollout, a pause or a Schedule.
	// +optional
	Pending int `json:"pending,omitempty"`
	// WaitingForDependency deployments wait for another Bundle.
	// +optional
	WaitingForDependency int `json:"waitingForDependency,omitempty"`
	// OutsideWindow deployments wait for a window of a Schedule; pending counts them, too. A Muster
	// addition.
	// +optional
	OutsideWindow int `json:"outsideWindow,omitempty"`
	// Paused deployments wait for the end of a pause; pending counts them, too. A Muster addition.
	// +optional
	Paused int `json:"paused,omitempty"`
	// DesiredReady is the number of all deployments.
	// +optional
	DesiredReady int `json:"desiredReady"`
	// NonReadyResources names at most ten unready ones.
	// +optional
	// +nullable
	NonReadyResources []NonReadyResource `json:"nonReadyResources,omitempty"`
}

// NonReadyResource is an unready Bundle or cluster.
type NonReadyResource struct {
	// Name of the Bundle or cluster.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// State of the Bundle or cluster.
	// +optional
	// +nullable
	State BundleState `json:"bundleState,omitempty"`
	// Message with the cause.
	// +optional
	// +nullable
	Message string `json:"message,omitempty"`
	// ModifiedStatus names resources that were changed downstream.
	// +optional
	// +nullable
	ModifiedStatus []ModifiedStatus `json:"modifiedStatus,omitempty"`
	// NonReadyStatus names unready resources.
	// +optional
	// +nullable
	NonReadyStatus []NonReadyStatus `json:"nonReadyStatus,omitempty"`
}

// ModifiedStatus is a resource changed downstream.
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
	// Create (`missing`) is true if the resource is gone downstream.
	// +optional
	// +nullable
	Create bool `json:"missing,omitempty"`
	// Exist is true if the resource exists and belongs to another owner.
	// +optional
	// +nullable
	Exist bool `json:"exist,omitempty"`
	// Delete is true if the resource exists and should not.
	// +optional
	// +nullable
	Delete bool `json:"delete,omitempty"`
	// Patch is the patch, as JSON, that would undo the change.
	// +optional
	// +nullable
	Patch limits.Document `json:"patch,omitempty"`
}

// NonReadyStatus is an unready resource.
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
	// Summary gives the cause.
	// +optional
	// +nullable
	Summary ReadinessSummary `json:"summary,omitempty"`
}

// ReadinessSummary is the state of a resource.
type ReadinessSummary struct {
	// State is a word for the state.
	// +optional
	// +nullable
	State limits.Name `json:"state,omitempty"`
	// Error is true if the resource does not become ready by itself.
	// +optional
	// +nullable
	Error bool `json:"error,omitempty"`
	// Transitioning is true if the resource is about to become ready.
	// +optional
	// +nullable
	Transitioning bool `json:"transitioning,omitempty"`
	// Message gives the cause.
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
