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

// DeletionStage is the name of the stage in which members lose the placement.
const DeletionStage = "kubernetes-fleet.io/deleteStage"

// Labels of approval requests.
const (
	// LabelTargetUpdateRun is the run, LabelTargetStage the stage.
	LabelTargetUpdateRun = "kubernetes-fleet.io/targetupdaterun"
	LabelTargetStage     = "kubernetes-fleet.io/targetUpdatingStage"
	// LabelTaskType says whether the approval is asked for beforeStage or afterStage.
	LabelTaskType = "kubernetes-fleet.io/taskType"
	// LabelLatestApproval, "true", is on every approval request.
	LabelLatestApproval = "kubernetes-fleet.io/isLatestUpdateRunApproval"
)

// Condition types and reasons of runs, stages, members in stages, tasks and approval requests.
const (
	// ConditionInitialized says whether the members are divided into stages. False is final, unless
	// the placement or the strategy is missing.
	ConditionInitialized = "Initialized"
	// ConditionProgressing says whether members are being updated, ConditionSucceeded whether all
	// are.
	ConditionProgressing = "Progressing"
	ConditionSucceeded   = "Succeeded"
	// ConditionStarted says that a member is being updated.
	ConditionStarted = "Started"
	// ConditionApprovalCreated and the others are of tasks.
	ConditionApprovalCreated  = "ApprovalRequestCreated"
	ConditionApprovalApproved = "ApprovalRequestApproved"
	ConditionWaitTimeElapsed  = "WaitTimeElapsed"
	// ConditionApproved on an approval request is the user's, ConditionApprovalAccepted the hub's.
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
