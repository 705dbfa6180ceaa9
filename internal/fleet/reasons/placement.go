package reasons

// Reasons of ClusterResourcePlacements and ResourcePlacements.
const (
	// AllWorkAreAvailable: all placed objects on the member work; Available of a member in a
	// placement.
	AllWorkAreAvailable = "AllWorkAreAvailable"
	// AllWorkHaveBeenApplied: all placed objects are applied on the member; Applied of a member in a
	// placement.
	AllWorkHaveBeenApplied = "AllWorkHaveBeenApplied"
	// AllWorkHaveDiffReported: all placed objects were compared on the member; DiffReported of a
	// member in a placement.
	AllWorkHaveDiffReported = "AllWorkHaveDiffReported"
	// AllWorkSynced: the Works of the member are written; WorkSynchronized of a member in a
	// placement.
	AllWorkSynced = "AllWorkSynced"
	// ApplyFailed: not all members have applied the placed objects; Applied of a placement.
	ApplyFailed = "ApplyFailed"
	// ApplyPending: the member has not reported yet whether all is applied; Applied of a member
	// in a placement.
	ApplyPending = "ApplyPending"
	// ApplySucceeded: all members have applied the placed objects; Applied of a placement.
	ApplySucceeded = "ApplySucceeded"
	// AuthorMayNotRead: the author of the placement may no longer read a placed object, and a user
	// must confirm its removal; ResourceSelected of a placement.
	AuthorMayNotRead = "AuthorMayNotRead"
	// AuthorRightsUnknown: the hub could not check the rights of the author of the placement or
	// of an override; ResourceSelected or Overridden of a placement.
	AuthorRightsUnknown = "AuthorRightsUnknown"
	// AuthorUnknown: the hub does not know the author of the placement or of an override;
	// ResourceSelected or Overridden of a placement.
	AuthorUnknown = "AuthorUnknown"
	// DiffReportingCompleted: all members have compared the placed objects; DiffReported of a
	// placement.
	DiffReportingCompleted = "DiffReportingCompleted"
	// DiffReportingIncompleteOrFailed: not all members have compared the placed objects; DiffReported
	// of a placement.
	DiffReportingIncompleteOrFailed = "DiffReportingIncompleteOrFailed"
	// DiffReportingPending: the member has not reported differences yet; DiffReported of a
	// member in a placement.
	DiffReportingPending = "DiffReportingPending"
	// EnvelopeNotPermitted: the author of an envelope lacks the same rights on the hub as the envelope
	// uses on members; ResourceSelected of a placement.
	EnvelopeNotPermitted = "EnvelopeNotPermitted"
	// FieldsNotSupported: the hub does not implement a field of the placement; Supported of a
	// placement.
	FieldsNotSupported = "FieldsNotSupported"
	// InvalidPolicy: spec.policy is not valid; Scheduled of a placement.
	InvalidPolicy = "InvalidPolicy"
	// InvalidResourceSelectors: spec.resourceSelectors is not valid; ResourceSelected of a
	// placement.
	InvalidResourceSelectors = "InvalidResourceSelectors"
	// KubeFleetLeftovers: KubeFleet's hub has left objects of the placement; LeftoversRemoved of
	// a placement, or Scheduled while they keep it from being taken over.
	KubeFleetLeftovers = "KubeFleetLeftovers"
	// NoOverrideSpecified: no override selects the placed objects; Overridden of a placement or of a
	// member in it.
	NoOverrideSpecified = "NoOverrideSpecified"
	// NotAllWorkAreAvailabilityTrackable: the kinds of some objects do not show whether they
	// work; Available of a member in a placement.
	NotAllWorkAreAvailabilityTrackable = "NotAllWorkAreAvailabilityTrackable"
	// NotAllWorkAreAvailable: some placed objects on the member do not work; Available of a member in
	// a placement.
	NotAllWorkAreAvailable = "NotAllWorkAreAvailable"
	// NotAllWorkHaveBeenApplied: some placed objects are not applied on the member; Applied of a
	// member in a placement.
	NotAllWorkHaveBeenApplied = "NotAllWorkHaveBeenApplied"
	// NotAllWorkHaveDiffReported: some placed objects were not compared on the member; DiffReported of
	// a member in a placement.
	NotAllWorkHaveDiffReported = "NotAllWorkHaveDiffReported"
	// OverriddenFailed: an override cannot be applied; Overridden of a placement or of a member
	// in it.
	OverriddenFailed = "OverriddenFailed"
	// OverriddenPending: the overrides have not been applied yet; Overridden of a member in a
	// placement.
	OverriddenPending = "OverriddenPending"
	// OverriddenSucceeded: the overrides are applied; Overridden of a placement or of a member
	// in it.
	OverriddenSucceeded = "OverriddenSucceeded"
	// OverrideNotPermitted: the author of an override lacks the same rights on the hub as the override
	// uses on members; Overridden of a placement.
	OverrideNotPermitted = "OverrideNotPermitted"
	// PlacementNotFound: an override names a missing placement; an Event of the override.
	PlacementNotFound = "PlacementNotFound"
	// RemovalUnfounded: a selected object is missing without a cause, and a user must confirm its
	// removal; ResourceSelected of a placement.
	RemovalUnfounded = "RemovalUnfounded"
	// ResourceAvailable: all placed objects work on all members; Available of a placement.
	ResourceAvailable = "ResourceAvailable"
	// ResourceAvailableUnknown: the member has not reported yet whether all works; Available of
	// a member in a placement.
	ResourceAvailableUnknown = "ResourceAvailableUnknown"
	// ResourceNotAvailableYet: some placed objects do not work on some members; Available of a
	// placement.
	ResourceNotAvailableYet = "ResourceNotAvailableYet"
	// RolloutControlledByExternalController: spec.strategy.type is External, and staged update
	// runs roll changes out; RolloutStarted of a placement or of a member in it.
	RolloutControlledByExternalController = "RolloutControlledByExternalController"
	// RolloutNotStartedYet: the member waits for others, a removal or a staged update run;
	// RolloutStarted of a placement or of a member in it.
	RolloutNotStartedYet = "RolloutNotStartedYet"
	// RolloutStarted: the rollout has begun; RolloutStarted of a placement or of a member in it.
	RolloutStarted = "RolloutStarted"
	// RolloutStartedUnknown: the rollout has not been decided yet; RolloutStarted of a member in
	// a placement.
	RolloutStartedUnknown = "RolloutStartedUnknown"
	// ScheduleFailed: the member is not picked; Scheduled of a member in a placement.
	ScheduleFailed = "ScheduleFailed"
	// SchedulePending: the policy names no member, so nothing is decided yet; Scheduled of a
	// placement.
	SchedulePending = "SchedulePending"
	// SchedulingPolicyFulfilled: the placement picks as many members as its policy wants; Scheduled
	// of a placement.
	SchedulingPolicyFulfilled = "SchedulingPolicyFulfilled"
	// SchedulingPolicyUnfulfilled: the placement picks fewer members than its policy wants, and rolls
	// out to those; Scheduled of a placement.
	SchedulingPolicyUnfulfilled = "SchedulingPolicyUnfulfilled"
	// StatusSyncFailed: the copy of the status in the namespace cannot be written; StatusSynced
	// of a placement.
	StatusSyncFailed = "StatusSyncFailed"
	// StatusSyncSucceeded: the copy of the status is in the namespace; StatusSynced of a
	// placement.
	StatusSyncSucceeded = "StatusSyncSucceeded"
	// SyncWorkFailed: the Works of the member cannot be written; WorkSynchronized of a member in
	// a placement.
	SyncWorkFailed = "SyncWorkFailed"
	// WorkFull: a Work has grown beyond its size limit, and its objects cannot move to another.
	// ResourceSelected of a placement, Overridden of a member in it.
	WorkFull = "WorkFull"
	// WorkNotSynchronizedYet: the Works of some members are not written; WorkSynchronized of a
	// placement.
	WorkNotSynchronizedYet = "WorkNotSynchronizedYet"
	// WorkSynchronized: the Works of all members are written; WorkSynchronized of a placement.
	WorkSynchronized = "WorkSynchronized"
	// WorkSynchronizedUnknown: the Works of the member are being written, or wait for the
	// schedule; WorkSynchronized of a member in a placement.
	WorkSynchronizedUnknown = "WorkSynchronizedUnknown"
)
