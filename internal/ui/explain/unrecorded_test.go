package explain

// Why reasons are not recorded.
const (
	notYet         = "no test with a hub on localkube comes to it yet"
	notWell        = "a cluster or an API server would have to be unwell, or old, in a way that localkube is not"
	anEvent        = "an event says it, and no condition: explain reads no events"
	inReport       = "the report of the agent says it; the record of the member has a reason of its own"
	isTrue         = "the condition that says it is True; the recordings were made before explain looked at those"
	notMissed      = "explain shows a member that is not picked only if the placement misses one, and no test with a hub waits for that"
	byObstacle     = "explain shows the reason in status.obstacles instead"
	aRace          = "it lasts a moment, or takes a failure between two calls"
	noObject       = "an agent says it of itself, and no object has it; the tests of internal/agent come to each state"
	ofOthers       = "agents of Rancher Fleet say it of what they could not deploy; ours have reasons of their own"
	afterRecording = "it was added after the recordings, and has a test with a hub of its own"
	playedPods     = "it takes a Pod that fails on a node, and localkube has none; internal/rollout tests what is said of such Pods"
)

// unrecorded are reasons that no recording shows, by the first kind of their cause,
// with why that is so.
var unrecorded = []struct{ kind, reasons, why string }{
	{kindCluster, "MemberClusterLeft RemovalUnconfirmed", notYet},
	{kindCluster, "FallbackInUse NotInitialized Quarantined LeavesFirst LeaveRefused LeftLate", afterRecording},
	{kindCluster, "Quarantining", aRace},
	{kindCluster, "Draining DrainStopped", afterRecording},
	{kindCluster, "InternalMemberClusterUnhealthy", inReport},
	{kindCluster, "PullSecretMissing InvalidName", notYet},
	{kindCluster, "WaitingForToken Queued", aRace},
	{kindCluster, "AgentWrongArchitecture AgentNotStarted AgentRefused AgentOutOfMemory AgentCrashing", playedPods},
	{kindCluster, "AgentRemoved NameTaken NotVerified OutOfSync", notYet},
	{kindCluster, "PropertiesSkipped ClusterProfileTaken AccessWithheld AccessSecretTaken AccessGiven AccessEnded", anEvent},
	{kindMemberCluster, "SwitchedOff NotVerified", notYet},
	{kindMemberCluster, "FallbackInUse ServicesExported", afterRecording},
	{kindMemberCluster, "ServicesUnreadable", notYet},
	{kindMemberCluster, "RolloutStopped NameTaken ForeignAgent NoCredential", afterRecording},
	{kindRequest, "ClusterLeaving", aRace},
	{kindRequest, "Quarantined", afterRecording},
	{kindRequest, "RequesterUnknown PolicyUnchecked", notWell},
	{kindToken, "LifeShortened InvalidRotation", notWell},
	{kindBundle, "Quarantined", afterRecording},
	{kindBundle, "ConsentMissing PolicyViolation TargetOutranked TargetUnmatched", notYet},
	{kindGitRepo, "KindNotImplemented GitRepoInvalid PolicyViolation GitCredentialsUnusable RepositoryUnreachable CommitUnreadable " +
		"BundleNameTaken BundlesNotReady NoTarget Leaving", afterRecording},
	{kindHelmOp, "HelmOpInvalid PolicyViolation ChartCredentialsUnusable ChartUnreadable BundleRefused BundleNameTaken", afterRecording},
	{kindBundleDeployment, "ContentUnreadable CorrectionFailed", aRace},
	{kindBundleDeployment, "Error", ofOthers},
	{kindBundleDeployment, "MoveFailed Unwatched NamespaceTerminating CRDConflict CRDsDiffer DownstreamResourceUnreadable", notYet},
	{kindClusterPlacement, "InvalidPolicy AppliedWorkOfAnotherHub ManifestFailed", notYet},
	{kindClusterPlacement, "NotInitialized Cordoned Quarantined Paused", afterRecording},
	{kindClusterPlacement, "Outranked NotNamed Unhealthy", notMissed},
	{kindClusterPlacement, "AgentCannotPlace NamespaceNotFound AgentLeft", notMissed},
	{kindClusterPlacement, "ResourceAvailableUnknown RolloutStartedUnknown OverriddenPending", aRace},
	{kindClusterPlacement, "DifferencesFound NotAllWorkAreAvailable NotAllWorkHaveDiffReported ResourceNotAvailableYet " +
		"DiffReportingIncompleteOrFailed", notYet},
	{kindClusterPlacement, "ScheduleFailed", byObstacle},
	{kindClusterPlacement, "WorkNotTrackable ManifestNotTrackable", isTrue},
	{kindAgent, "BadInput Waiting Denied Retrying Unreachable Left Fenced Standby Starting Trying Joining", noObject},
}
