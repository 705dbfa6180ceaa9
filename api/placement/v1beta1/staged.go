package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/api/limits"
)

// ClusterStagedUpdateRun rolls out one version of the resources of a ClusterResourcePlacement,
// stage by stage. The strategy of the placement must have the type External.
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

// StagedUpdateRun rolls out one version of the resources of a ResourcePlacement, stage by stage.
// The strategy of the placement must have the type External.
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

// UpdateRunSpec is the desired state of a staged update run. Users write it. Only the state may
// change later.
//
// +kubebuilder:validation:XValidation:rule="self.placementName == oldSelf.placementName",message="placementName is immutable: create another run"
// +kubebuilder:validation:XValidation:rule="has(self.resourceSnapshotIndex) == has(oldSelf.resourceSnapshotIndex) && (!has(self.resourceSnapshotIndex) || self.resourceSnapshotIndex == oldSelf.resourceSnapshotIndex)",message="resourceSnapshotIndex is immutable: create another run"
// +kubebuilder:validation:XValidation:rule="self.stagedRolloutStrategyName == oldSelf.stagedRolloutStrategyName",message="stagedRolloutStrategyName is immutable: create another run"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.state) || has(self.state) && (self.state == oldSelf.state || self.state == 'Run' || self.state == 'Stop' && oldSelf.state == 'Run')",message="state goes from Initialize to Run, from Run to Stop, and from Stop to Run"
type UpdateRunSpec struct {
	// placementName is the name of the placement to roll out.
	// +required
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:MinLength=1
	PlacementName string `json:"placementName"`
	// resourceSnapshotIndex is the version to roll out, one of the placement's status.resourceIndexes.
	// Default: the latest at the initialization of the run.
	// +optional
	ResourceSnapshotIndex limits.Name `json:"resourceSnapshotIndex,omitempty"`
	// stagedRolloutStrategyName names the strategy with the stages.
	// +required
	StagedUpdateStrategyName limits.Name `json:"stagedRolloutStrategyName"`
	// state is Initialize, Run or Stop. With Initialize, the run only divides the members into stages.
	// With Stop, it updates no further members until the state is Run again.
	// +optional
	// +kubebuilder:default=Initialize
	// +kubebuilder:validation:Enum=Initialize;Run;Stop
	State string `json:"state,omitempty"`
}

// UpdateRunStatus is the observed state of a staged update run. Only the hub writes it.
type UpdateRunStatus struct {
	// policySnapshotIndexUsed is never set, because Muster keeps no versions of policies.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PolicySnapshotIndexUsed string `json:"policySnapshotIndexUsed,omitempty"`
	// policyObservedClusterCount is the number of picked members at the initialization of the run.
	// +optional
	PolicyObservedClusterCount int `json:"policyObservedClusterCount,omitempty"`
	// resourceSnapshotIndexUsed is the version that the run rolls out.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ResourceSnapshotIndexUsed string `json:"resourceSnapshotIndexUsed,omitempty"`
	// appliedStrategy is the placement's apply strategy at the initialization of the run.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"appliedStrategy,omitempty"`
	// stagedUpdateStrategySnapshot is the strategy at the initialization of the run.
	// +optional
	StagedUpdateStrategySnapshot *UpdateStrategySpec `json:"stagedUpdateStrategySnapshot,omitempty"`
	// stagesStatus is the progress of each stage, in order.
	// +optional
	// +kubebuilder:validation:MaxItems=31
	StagesStatus []StageUpdatingStatus `json:"stagesStatus,omitempty"`
	// deletionStageStatus is the progress of the removal after the last stage, with the members that
	// lose the placement.
	// +optional
	DeletionStageStatus *StageUpdatingStatus `json:"deletionStageStatus,omitempty"`
	// placementUID is the UID of the placement at the initialization of the run. The run does not
	// continue with another placement of the same name. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	PlacementUID string `json:"placementUID,omitempty"`
	// begun is the time when the run started to update members, or to wait for its turn. The run with
	// the latest time decides the version on the members. A Muster addition.
	// +optional
	Begun *metav1.MicroTime `json:"begun,omitempty"`
	// message is the cause of a wait or a failure. Empty after a success. A Muster addition.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
	// conditions: Initialized, Progressing and Succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageUpdatingStatus is the progress of a stage.
type StageUpdatingStatus struct {
	// stageName is the name of the stage.
	// +required
	// +kubebuilder:validation:MaxLength=253
	StageName string `json:"stageName"`
	// clusters are the members of the stage, in the order of the update.
	// +optional
	// +kubebuilder:validation:MaxItems=1000
	Clusters []ClusterUpdatingStatus `json:"clusters,omitempty"`
	// afterStageTaskStatus is the progress of the tasks between this stage and the next one.
	// +optional
	// +kubebuilder:validation:MaxItems=2
	AfterStageTaskStatus []StageTaskStatus `json:"afterStageTaskStatus,omitempty"`
	// beforeStageTaskStatus is the progress of the tasks before the stage.
	// +optional
	// +kubebuilder:validation:MaxItems=1
	BeforeStageTaskStatus []StageTaskStatus `json:"beforeStageTaskStatus,omitempty"`
	// startTime is the time when the stage began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is the time when the stage and its tasks ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// conditions: Progressing and Succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterUpdatingStatus is the progress of a member.
type ClusterUpdatingStatus struct {
	// clusterName is the name of a MemberCluster, or <workspace>/<name> of a Cluster.
	// +required
	// +kubebuilder:validation:MaxLength=255
	ClusterName string `json:"clusterName"`
	// conditions: Started and Succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageTaskStatus is the progress of a task.
type StageTaskStatus struct {
	// type is TimedWait or Approval.
	// +required
	// +kubebuilder:validation:Enum=TimedWait;Approval
	Type string `json:"type"`
	// approvalRequestName is the name of the approval request of the task.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ApprovalRequestName string `json:"approvalRequestName,omitempty"`
	// conditions: ApprovalRequestCreated and ApprovalRequestApproved, or WaitTimeElapsed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
