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
	// StateNotReady is an applied deployment with unready is the number of ready resources.
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
	// notReady is the number of applied deployments with unready is the number of ready resources.
	// +optional
	NotReady int `json:"notReady,omitempty"`
	// waitApplied is the number of deployments that wait to be applied.
	// +optional
	WaitApplied int `json:"waitApplied,omitempty"`
	// errApplied is the number of failed deployments.
	// +optional
	ErrApplied int `json:"errApplied,omitempty"`
	// outOfSync is the number of deployments without the newest content.
	// +optional
	OutOfSync int `json:"outOfSync,omitempty"`
	// modified is the number of deployments that were changed downstream.
	// +optional
	Modified int `json:"modified,omitempty"`
	// ready is the number of deployments without a problem.
	// +optional
	Ready int `json:"ready"`
	// pending is the number of deployments held back by the rollout, a pause or a Schedule.
	// +optional
	Pending int `json:"pending,omitempty"`
	// waitingForDependency is the number of deployments that wait for another Bundle.
	// +optional
	WaitingForDependency int `json:"waitingForDependency,omitempty"`
	// outsideWindow is the number of deployments that wait for a window of a Schedule. They also count
	// as pending. A Muster addition.
	// +optional
	OutsideWindow int `json:"outsideWindow,omitempty"`
	// paused is the number of deployments that wait for the end of a pause. They also count as
	// pending. A Muster addition.
	// +optional
	Paused int `json:"paused,omitempty"`
	// desiredReady is the number of all deployments.
	// +optional
	DesiredReady int `json:"desiredReady"`
	// nonReadyResources names at most ten unready Bundles or clusters.
	// +optional
	// +nullable
	NonReadyResources []NonReadyResource `json:"nonReadyResources,omitempty"`
}

// NonReadyResource is an unready Bundle or cluster.
type NonReadyResource struct {
	// name is the name of the Bundle or cluster.
	// +optional
	// +nullable
	Name string `json:"name,omitempty"`
	// bundleState is the state of the Bundle or cluster.
	// +optional
	// +nullable
	State BundleState `json:"bundleState,omitempty"`
	// message is the cause.
	// +optional
	// +nullable
	Message string `json:"message,omitempty"`
	// modifiedStatus names resources that were changed downstream.
	// +optional
	// +nullable
	ModifiedStatus []ModifiedStatus `json:"modifiedStatus,omitempty"`
	// nonReadyStatus names unready is the number of ready resources.
	// +optional
	// +nullable
	NonReadyStatus []NonReadyStatus `json:"nonReadyStatus,omitempty"`
}

// ModifiedStatus is a resource changed downstream.
type ModifiedStatus struct {
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
	// missing is true if the resource was deleted downstream.
	// +optional
	// +nullable
	Create bool `json:"missing,omitempty"`
	// exist is true if the resource exists, and belongs to another owner.
	// +optional
	// +nullable
	Exist bool `json:"exist,omitempty"`
	// delete is true if the resource exists, but must not.
	// +optional
	// +nullable
	Delete bool `json:"delete,omitempty"`
	// patch is the JSON patch to undo the change.
	// +optional
	// +nullable
	Patch limits.Document `json:"patch,omitempty"`
}

// NonReadyStatus is an unready resource.
type NonReadyStatus struct {
	// uid is the UID of the resource.
	// +optional
	// +nullable
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=253
	UID types.UID `json:"uid,omitempty"`
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
	// summary is the state of the resource, with the cause.
	// +optional
	// +nullable
	Summary ReadinessSummary `json:"summary,omitempty"`
}

// ReadinessSummary is the state of a resource.
type ReadinessSummary struct {
	// state is the state in one word.
	// +optional
	// +nullable
	State limits.Name `json:"state,omitempty"`
	// error is true if the resource does not become ready by itself.
	// +optional
	// +nullable
	Error bool `json:"error,omitempty"`
	// transitioning is true if the resource is about to become ready.
	// +optional
	// +nullable
	Transitioning bool `json:"transitioning,omitempty"`
	// message gives the cause.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxItems=64
	Message []limits.Message `json:"message,omitempty"`
}

// ResourceCounts counts deployed resources by state.
type ResourceCounts struct {
	// ready is the number of ready resources.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Ready int `json:"ready"`
	// desiredReady is the number of all resources.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	DesiredReady int `json:"desiredReady"`
	// waitApplied is the number of resources that wait to be applied.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	WaitApplied int `json:"waitApplied"`
	// modified is the number of resources that were changed downstream.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Modified int `json:"modified"`
	// orphaned is the number of resources left over from an earlier deployment.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Orphaned int `json:"orphaned"`
	// missing is the number of resources that were deleted downstream.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Missing int `json:"missing"`
	// unknown is the number of resources in an unknown state.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Unknown int `json:"unknown"`
	// notReady is the number of resources that are not ready.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	NotReady int `json:"notReady"`
}
