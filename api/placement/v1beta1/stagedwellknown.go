package v1beta1

// States of a run.
const (
	StateInitialize = "Initialize"
	StateRun        = "Run"
	StateStop       = "Stop"
)

// Types of tasks.
const (
	TaskTimedWait = "TimedWait"
	TaskApproval  = "Approval"
)

// DeletionStage is the name of the stage that removes the placement from members.
const DeletionStage = "kubernetes-fleet.io/deleteStage"

// Labels of approval requests.
const (
	// LabelTargetUpdateRun is the run, LabelTargetStage the stage.
	LabelTargetUpdateRun = "kubernetes-fleet.io/targetupdaterun"
	LabelTargetStage     = "kubernetes-fleet.io/targetUpdatingStage"
	// LabelTaskType is beforeStage or afterStage.
	LabelTaskType = "kubernetes-fleet.io/taskType"
	// LabelLatestApproval, "true", is on every approval request.
	LabelLatestApproval = "kubernetes-fleet.io/isLatestUpdateRunApproval"
)

// Condition types and reasons of runs, stages, members in stages, tasks and approval requests.
const (
	// ConditionInitialized reports whether the members are divided into stages. False is final, unless
	// the placement or the strategy is missing.
	ConditionInitialized = "Initialized"
	// ConditionProgressing reports whether members are being updated, ConditionSucceeded whether all
	// are.
	ConditionProgressing = "Progressing"
	ConditionSucceeded   = "Succeeded"
	// ConditionStarted means: the update of a member has started.
	ConditionStarted = "Started"
	// ConditionApprovalCreated and the others are conditions of tasks.
	ConditionApprovalCreated  = "ApprovalRequestCreated"
	ConditionApprovalApproved = "ApprovalRequestApproved"
	ConditionWaitTimeElapsed  = "WaitTimeElapsed"
	// ConditionApproved on an approval request is set by the user, ConditionApprovalAccepted by the
	// hub.
	ConditionApproved         = "Approved"
	ConditionApprovalAccepted = "ApprovalAccepted"

	ReasonRunInitialized  = "UpdateRunInitializedSuccessfully"
	ReasonRunInitFailed   = "UpdateRunInitializedFailed"
	ReasonRunProgressing  = "UpdateRunProgressing"
	ReasonRunWaiting      = "UpdateRunWaiting"
	ReasonRunStuck        = "UpdateRunStuck"
	ReasonRunStopping     = "UpdateRunStopping"
	ReasonRunStopped      = "UpdateRunStopped"
	ReasonRunFailed       = "UpdateRunFailed"
	ReasonRunSucceeded    = "UpdateRunSucceeded"
	ReasonStageStarted    = "StageUpdatingStarted"
	ReasonStageWaiting    = "StageUpdatingWaiting"
	ReasonStageStopping   = "StageUpdatingStopping"
	ReasonStageStopped    = "StageUpdatingStopped"
	ReasonStageFailed     = "StageUpdatingFailed"
	ReasonStageSucceeded  = "StageUpdatingSucceeded"
	ReasonStageSkipped    = "StageUpdatingSkippedNoClusters"
	ReasonClusterStarted  = "ClusterUpdatingStarted"
	ReasonClusterFailed   = "ClusterUpdatingFailed"
	ReasonClusterDone     = "ClusterUpdatingSucceeded"
	ReasonTaskCreated     = "StageTaskApprovalRequestCreated"
	ReasonTaskApproved    = "StageTaskApprovalRequestApproved"
	ReasonTaskWaited      = "AfterStageTaskWaitTimeElapsed"
	ReasonRequestAccepted = "ApprovalRequestApprovalAccepted"
)
