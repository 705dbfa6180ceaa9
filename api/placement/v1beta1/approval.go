package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterApprovalRequest requests an approval for a ClusterStagedUpdateRun. The hub creates it. To
// approve, set the condition Approved in its status to True, with its metadata.generation as
// observedGeneration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterapprovalrequests,scope=Cluster,shortName=careq,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Update-Run",type=string,JSONPath=`.spec.parentStageRollout`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.targetStage`
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=`.status.conditions[?(@.type=="Approved")].status`
// +kubebuilder:printcolumn:name="ApprovalAccepted",type=string,JSONPath=`.status.conditions[?(@.type=="ApprovalAccepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterApprovalRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an approval request is immutable"
	Spec ApprovalRequestSpec `json:"spec"`
	// +optional
	Status ApprovalRequestStatus `json:"status,omitempty"`
}

// ClusterApprovalRequestList is a list of ClusterApprovalRequests.
//
// +kubebuilder:object:root=true
type ClusterApprovalRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterApprovalRequest `json:"items"`
}

// ApprovalRequest requests an approval for a StagedUpdateRun. The hub creates it. To approve, set
// the condition Approved in its status to True, with its metadata.generation as observedGeneration.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=approvalrequests,shortName=areq,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Update-Run",type=string,JSONPath=`.spec.parentStageRollout`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.targetStage`
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=`.status.conditions[?(@.type=="Approved")].status`
// +kubebuilder:printcolumn:name="ApprovalAccepted",type=string,JSONPath=`.status.conditions[?(@.type=="ApprovalAccepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ApprovalRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of an approval request is immutable"
	Spec ApprovalRequestSpec `json:"spec"`
	// +optional
	Status ApprovalRequestStatus `json:"status,omitempty"`
}

// ApprovalRequestList is a list of ApprovalRequests.
//
// +kubebuilder:object:root=true
type ApprovalRequestList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApprovalRequest `json:"items"`
}

// ApprovalRequestSpec names the run and the stage.
type ApprovalRequestSpec struct {
	// parentStageRollout is the name of the run.
	// +required
	TargetUpdateRun limits.Name `json:"parentStageRollout"`
	// targetStage is the name of the stage.
	// +required
	TargetStage limits.Name `json:"targetStage"`
}

// ApprovalRequestStatus is written by the approving user and by the hub.
type ApprovalRequestStatus struct {
	// conditions: Approved, by the user, and ApprovalAccepted, by the hub.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
