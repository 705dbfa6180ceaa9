package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterStagedUpdateRun is accepted, and not executed: its condition Supported says what to use instead.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterstagedupdateruns,scope=Cluster,shortName=csur,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Supported",type=string,JSONPath=`.status.conditions[?(@.type=="Supported")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Supported")].message`
type ClusterStagedUpdateRun struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec UpdateRunSpec `json:"spec"`
	// +optional
	Status UpdateRunStatus `json:"status,omitempty"`
}

// ClusterStagedUpdateRunList is a list of ClusterStagedUpdateRuns.
//
// +kubebuilder:object:root=true
type ClusterStagedUpdateRunList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStagedUpdateRun `json:"items"`
}

// StagedUpdateRun is accepted, and not executed: its condition Supported says what to use instead.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=stagedupdateruns,shortName=sur,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Supported",type=string,JSONPath=`.status.conditions[?(@.type=="Supported")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Supported")].message`
type StagedUpdateRun struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec UpdateRunSpec `json:"spec"`
	// +optional
	Status UpdateRunStatus `json:"status,omitempty"`
}

// StagedUpdateRunList is a list of StagedUpdateRuns.
//
// +kubebuilder:object:root=true
type StagedUpdateRunList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StagedUpdateRun `json:"items"`
}

// UpdateRunSpec is written by users.
type UpdateRunSpec struct {
	// PlacementName is the placement to roll out.
	// +required
	// +kubebuilder:validation:MaxLength=255
	PlacementName string `json:"placementName"`
	// ResourceSnapshotIndex is which selection of resources to roll out.
	// +optional
	ResourceSnapshotIndex limits.Name `json:"resourceSnapshotIndex,omitempty"`
	// StagedUpdateStrategyName is the strategy that has the stages.
	// +required
	StagedUpdateStrategyName limits.Name `json:"stagedRolloutStrategyName"`
	// State is Initialize, Run or Stop.
	// +optional
	// +kubebuilder:default=Initialize
	// +kubebuilder:validation:Enum=Initialize;Run;Stop
	State string `json:"state,omitempty"`
}

// UpdateRunStatus is written by the hub only.
type UpdateRunStatus struct {
	// Conditions: Supported, which is False.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterStagedUpdateStrategy is accepted, and not used: see ClusterStagedUpdateRun.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterstagedupdatestrategies,scope=Cluster,shortName=csus,categories={fleet,fleet-placement}
type ClusterStagedUpdateStrategy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec UpdateStrategySpec `json:"spec"`
}

// ClusterStagedUpdateStrategyList is a list of ClusterStagedUpdateStrategies.
//
// +kubebuilder:object:root=true
type ClusterStagedUpdateStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStagedUpdateStrategy `json:"items"`
}

// StagedUpdateStrategy is accepted, and not used: see StagedUpdateRun.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=stagedupdatestrategies,shortName=sus,categories={fleet,fleet-placement}
type StagedUpdateStrategy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec UpdateStrategySpec `json:"spec"`
}

// StagedUpdateStrategyList is a list of StagedUpdateStrategies.
//
// +kubebuilder:object:root=true
type StagedUpdateStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StagedUpdateStrategy `json:"items"`
}

// UpdateStrategySpec is written by users.
type UpdateStrategySpec struct {
	// Stages in their order.
	// +required
	// +kubebuilder:validation:MaxItems=31
	Stages []StageConfig `json:"stages"`
}

// StageConfig is one stage.
type StageConfig struct {
	// Name of the stage, unique in its strategy.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]+$`
	Name string `json:"name"`
	// LabelSelector of the members of the stage.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// SortingLabelKey is the label whose value, a number, orders the members of the stage; default: their names.
	// +optional
	SortingLabelKey *limits.Name `json:"sortingLabelKey,omitempty"`
	// MaxConcurrency is how many members of the stage, or which part of them, are updated at once.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
	// AfterStageTasks have to end before the next stage begins.
	// +optional
	// +kubebuilder:validation:MaxItems=2
	AfterStageTasks []StageTask `json:"afterStageTasks,omitempty"`
	// BeforeStageTasks have to end before the stage begins.
	// +optional
	// +kubebuilder:validation:MaxItems=1
	BeforeStageTasks []StageTask `json:"beforeStageTasks,omitempty"`
}

// StageTask is what a stage waits for.
type StageTask struct {
	// Type is TimedWait or Approval.
	// +required
	// +kubebuilder:validation:Enum=TimedWait;Approval
	Type string `json:"type"`
	// WaitTime of a TimedWait, such as 1h.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="waitTime must be 0 or a Go duration such as 240h or 90m, at most 2562047h; the units are ns, us, µs, ms, s, m and h, there is none for days"
	WaitTime *metav1.Duration `json:"waitTime,omitempty"`
}

// ClusterApprovalRequest is served for the tools that list it. No run asks for an approval.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterapprovalrequests,scope=Cluster,shortName=careq,categories={fleet,fleet-placement}
type ClusterApprovalRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
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

// ApprovalRequest is served for the tools that list it. No run asks for an approval.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=approvalrequests,shortName=areq,categories={fleet,fleet-placement}
type ApprovalRequest struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
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

// ApprovalRequestSpec says what would be approved.
type ApprovalRequestSpec struct {
	// TargetUpdateRun is the name of the run.
	// +required
	TargetUpdateRun limits.Name `json:"parentStageRollout"`
	// TargetStage is the name of the stage.
	// +required
	TargetStage limits.Name `json:"targetStage"`
}

// ApprovalRequestStatus is written by whoever approves.
type ApprovalRequestStatus struct {
	// Conditions: Approved and ApprovalAccepted.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
