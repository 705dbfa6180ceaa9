package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterStagedUpdateRun rolls out one version of a ClusterResourcePlacement's resources to its
// members, stage by stage. The placement's strategy has the type External.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clusterstagedupdateruns,scope=Cluster,shortName=csur,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Resource-Snapshot-Index",type=string,JSONPath=`.status.resourceSnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Initialized",type=string,JSONPath=`.status.conditions[?(@.type=="Initialized")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 128",message="the name of a run has at most 127 characters: approval requests are named after it"
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

// StagedUpdateRun rolls out one version of a ResourcePlacement's resources to its members, stage by
// stage. The placement's strategy has the type External.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=stagedupdateruns,shortName=sur,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Resource-Snapshot-Index",type=string,JSONPath=`.status.resourceSnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Initialized",type=string,JSONPath=`.status.conditions[?(@.type=="Initialized")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 128",message="the name of a run has at most 127 characters: approval requests are named after it"
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

// UpdateRunSpec is written by users. Only the state may change later.
//
// +kubebuilder:validation:XValidation:rule="self.placementName == oldSelf.placementName",message="placementName is immutable: create another run"
// +kubebuilder:validation:XValidation:rule="has(self.resourceSnapshotIndex) == has(oldSelf.resourceSnapshotIndex) && (!has(self.resourceSnapshotIndex) || self.resourceSnapshotIndex == oldSelf.resourceSnapshotIndex)",message="resourceSnapshotIndex is immutable: create another run"
// +kubebuilder:validation:XValidation:rule="self.stagedRolloutStrategyName == oldSelf.stagedRolloutStrategyName",message="stagedRolloutStrategyName is immutable: create another run"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.state) || has(self.state) && (self.state == oldSelf.state || self.state == 'Run' || self.state == 'Stop' && oldSelf.state == 'Run')",message="state goes from Initialize to Run, from Run to Stop, and from Stop to Run"
type UpdateRunSpec struct {
	// PlacementName is the placement to roll out.
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:MinLength=1
	PlacementName string `json:"placementName"`
	// ResourceSnapshotIndex is the version to roll out, one of the placement's status.resourceIndexes.
	// Default: the latest at the initialization of the run.
	// +optional
	ResourceSnapshotIndex limits.Name `json:"resourceSnapshotIndex,omitempty"`
	// StagedUpdateStrategyName names the strategy with the stages.
	// +required
	StagedUpdateStrategyName limits.Name `json:"stagedRolloutStrategyName"`
	// State is Initialize, Run or Stop. Initialize only divides the members into stages. After Stop no
	// further member is updated until the state is Run again.
	// +optional
	// +kubebuilder:default=Initialize
	// +kubebuilder:validation:Enum=Initialize;Run;Stop
	State string `json:"state,omitempty"`
}

// UpdateRunStatus is written by the hub only.
type UpdateRunStatus struct {
	// PolicySnapshotIndexUsed is accepted, and not set: Muster keeps no versions of policies.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PolicySnapshotIndexUsed string `json:"policySnapshotIndexUsed,omitempty"`
	// PolicyObservedClusterCount is the number of picked members at the initialization of the run.
	// +optional
	PolicyObservedClusterCount int `json:"policyObservedClusterCount,omitempty"`
	// ResourceSnapshotIndexUsed is the version of the run.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ResourceSnapshotIndexUsed string `json:"resourceSnapshotIndexUsed,omitempty"`
	// ApplyStrategy is the placement's apply strategy at the initialization of the run.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"appliedStrategy,omitempty"`
	// StagedUpdateStrategySnapshot is the strategy at the initialization of the run.
	// +optional
	StagedUpdateStrategySnapshot *UpdateStrategySpec `json:"stagedUpdateStrategySnapshot,omitempty"`
	// StagesStatus has the stages in their order.
	// +optional
	// +kubebuilder:validation:MaxItems=31
	StagesStatus []StageUpdatingStatus `json:"stagesStatus,omitempty"`
	// DeletionStageStatus has the members that lose the placement after the last stage.
	// +optional
	DeletionStageStatus *StageUpdatingStatus `json:"deletionStageStatus,omitempty"`
	// PlacementUID is the UID of the placement at the initialization of the run. The run does not
	// continue with another placement of the same name. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PlacementUID string `json:"placementUID,omitempty"`
	// Begun is the time when the run first updated members, or waited to. The run with the latest time
	// decides the version for the members. A Muster addition.
	// +optional
	Begun *metav1.MicroTime `json:"begun,omitempty"`
	// Message states the cause of a wait or a failure; empty after success. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
	// Conditions: Initialized, Progressing and Succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageUpdatingStatus is the progress of a stage.
type StageUpdatingStatus struct {
	// StageName is the name of the stage.
	// +required
	// +kubebuilder:validation:MaxLength=253
	StageName string `json:"stageName"`
	// Clusters are the members of the stage, in the order of their updates.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Clusters []ClusterUpdatingStatus `json:"clusters,omitempty"`
	// AfterStageTaskStatus has the tasks that must end before the next stage begins.
	// +optional
	// +kubebuilder:validation:MaxItems=2
	AfterStageTaskStatus []StageTaskStatus `json:"afterStageTaskStatus,omitempty"`
	// BeforeStageTaskStatus has the tasks that must end before the stage begins.
	// +optional
	// +kubebuilder:validation:MaxItems=1
	BeforeStageTaskStatus []StageTaskStatus `json:"beforeStageTaskStatus,omitempty"`
	// StartTime is when the stage began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// EndTime is when the stage ended, its tasks included.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// Conditions: Progressing and Succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterUpdatingStatus is the progress of a member.
type ClusterUpdatingStatus struct {
	// ClusterName is the name of a MemberCluster, or <workspace>/<name> of a Cluster.
	// +required
	// +kubebuilder:validation:MaxLength=255
	ClusterName string `json:"clusterName"`
	// Conditions: Started and Succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageTaskStatus is the progress of a task.
type StageTaskStatus struct {
	// Type is TimedWait or Approval.
	// +required
	// +kubebuilder:validation:Enum=TimedWait;Approval
	Type string `json:"type"`
	// ApprovalRequestName is the name of the approval request of the task.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ApprovalRequestName string `json:"approvalRequestName,omitempty"`
	// Conditions: ApprovalRequestCreated and ApprovalRequestApproved, or WaitTimeElapsed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
