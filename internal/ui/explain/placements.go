package explain

import (
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// placementCauses explains why selected objects of a placement are not on its members.
var placementCauses = []cause{
	{
		kinds: ofPlacements, reasons: []string{
			reasons.InvalidResourceSelectors, reasons.InvalidPolicy, reasons.FieldsNotSupported, reasons.InvalidManifest,
		},
		means:  "The placement has an invalid or unsupported field.",
		remedy: "Correct the field in the message.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.RemovalUnfounded},
		means: "An object is no longer selected. The hub cannot prove that a user removed it, because it cannot read the object, or may not. " +
			"Placed objects stay unchanged.",
		remedy: "Resolve the problem in the message. To remove the object from the members, confirm the removal.",
		onHub:  []string{confirmPlacement},
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.WorkFull},
		means: "The objects of a Work exceed the size limit, and the member's agent is too old to move objects between Works. Placed objects " +
			"stay unchanged.",
		remedy: "Upgrade the agent, make the objects smaller, or select some of them with another placement.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.AuthorUnknown, reasons.AuthorRightsUnknown, reasons.AuthorMayNotRead},
		means: "The hub reads placed objects with the rights of the placement's author. Overrides and envelopes need the " +
			"rights of their authors. These rights are missing or unknown.",
		remedy: "Grant the right to the author in the message, or let a user with the right write the placement, override or envelope again. " +
			"To remove the missing objects from the members, confirm the removal.",
		onHub: []string{confirmPlacement},
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.OverrideNotPermitted},
		means: "The author of an override has no right to make the same change on the hub, so the hub ignores the override. Members that " +
			"already have the change keep it.",
		remedy: "Grant the right in the message to the author, let a user with the right change the override, or delete the " +
			"override.",
		onHub: []string{"kubectl get clusterresourceoverrides,resourceoverrides -A"},
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.EnvelopeNotPermitted},
		means: "The author of an envelope has no right to create and update the enclosed object on the hub, so the hub does not place it. " +
			"Objects placed before stay unchanged.",
		remedy: "Grant the right in the message to the author, let a user with the right change the envelope, or remove the " +
			"object from the envelope.",
		onHub: []string{"kubectl get clusterresourceenvelopes,resourceenvelopes -A"},
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.PolicyMissing},
		means:  "The hub cannot identify the authors of placements, because its admission policy is missing. Placed objects stay unchanged.",
		remedy: "Restore the policy with the chart fleet.",
		onHub:  []string{"helm -n cattle-fleet-system upgrade fleet fleet/fleet --reset-then-reuse-values"},
	},
	{
		kinds: ofPlacements, reasons: []string{
			reasons.SchedulingPolicyUnfulfilled, reasons.ScheduleFailed, reasons.AffinityNotMatched, reasons.TaintNotTolerated,
			reasons.TopologySpreadNotSatisfied, reasons.Outranked, reasons.NotNamed,
		},
		means:  "Fewer members match than the policy requires.",
		remedy: "Compare the affinity, tolerations and spread of the policy with the members. The message has the reason for each member.",
		onHub:  []string{"kubectl get memberclusters,clusters.fleet.cattle.io -A --show-labels"},
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.NoSuchMember},
		means: "The policy names a member that does not exist, or a Cluster whose workspace is closed to placements.",
		remedy: "Correct the name in spec.policy.clusterNames: a Cluster is WORKSPACE/NAME. To open a workspace to placements, set its label " +
			"muster/placement=true.",
		onHub: []string{"muster get"},
	},
	{
		kinds: ofPlacements, reasons: []string{
			reasons.NotJoined, reasons.Unhealthy, reasons.Leaving, reasons.AgentCannotPlace, reasons.NamespaceNotFound, reasons.NamespaceNotAdmitted,
			reasons.ApprovalRequired, reasons.NotInitialized, reasons.Cordoned, reasons.Quarantined,
			reasons.AgentUnhealthy, reasons.AgentLeft, reasons.Revoked,
		},
		means:  "A selected member cannot receive the placement in its current state.",
		remedy: "Run muster explain for that member.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.Paused},
		means:  "A user has paused the placement or a member. Placed objects stay, and nothing new arrives. This is no error.",
		remedy: "To go on, end the pause of the placement or of the member with muster pause NAME --undo.",
		aside:  true,
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.SchedulePending},
		means:  "The placement has the type PickFixed and names no member.",
		remedy: "Name members in spec.policy.clusterNames.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.WorkNotSynchronizedYet, reasons.SyncWorkFailed},
		means:  "The hub cannot write placed objects into the namespace of a member.",
		remedy: "Read the cause in the message. The hub retries.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.RolloutControlledByExternalController},
		means: "spec.strategy.type is External, so only staged update runs change members. No run has reached the members in the message. They " +
			"keep their version.",
		remedy: "Create a staged update run, or check why the current run waits. To let the hub roll out changes by itself, set " +
			"spec.strategy.type to RollingUpdate.",
		onHub: []string{"kubectl get clusterstagedupdateruns", "kubectl get stagedupdateruns -A"},
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.OverriddenFailed},
		means:  "The hub cannot apply an override to the placed objects.",
		remedy: "Correct the path or the value of the override in the message.",
		onHub:  []string{"kubectl get clusterresourceoverrides", "kubectl get resourceoverrides -A"},
	},
	{
		kinds: []string{kindWork}, reasons: []string{reasons.InvalidManifest},
		means:  "The placement contains data that is not a Kubernetes object.",
		remedy: "Correct the source in the message, for example an envelope.",
	},
	{
		kinds: ofWorks, reasons: []string{reasons.DeployerNotRunning},
		means: "The delivery process of the member is not running. Nothing is applied there.",
		remedy: "Read the cause in the message, or in the agent's log. The command is for a MemberCluster. For a Cluster, " +
			"read the log of the Pods with the label app=fleet-agent in cattle-fleet-system.",
		onMember: []string{memberLog},
	},
	{
		kinds: ofWorks, reasons: []string{reasons.KindNotServed, reasons.NamespaceMissing},
		means:  "The member lacks the kind or the namespace of a placed object.",
		remedy: "Place the definition or the namespace, too. The agent then applies the object.",
	},
	{
		kinds: ofWorks, reasons: []string{
			reasons.AppliedByAnotherWork, reasons.OwnedByOthers, reasons.NotTakenOver, reasons.FieldConflict, reasons.Contested,
			reasons.AppliedWorkOfAnotherHub,
		},
		means:  "An object of that name on the member belongs to another owner, or another owner writes the same fields.",
		remedy: "Remove the other object, or allow the takeover with whenToTakeOver and the apply strategy of the placement.",
	},
	{
		kinds: ofWorks, reasons: []string{
			reasons.ImmutableField, reasons.Forbidden, reasons.QuotaExceeded, reasons.Rejected, reasons.WorkOfAnotherMember,
			reasons.ManifestNotApplied, "ManifestApplyFailed",
		},
		means:  "The API server of the member refuses an object.",
		remedy: "The message quotes its answer: an immutable field, a quota, a policy, or a missing right of the agent.",
	},
	{
		kinds: ofWorks, reasons: []string{reasons.Drifted, reasons.DifferencesFound, "FoundDrifts"},
		means: "A user or a program has changed a placed object on the member. The placement does not restore it.",
		remedy: "To restore it, set whenToApply to Always, and a type other than ReportDiff, in spec.strategy.applyStrategy. " +
			"Otherwise change the placed object on the hub.",
	},
	{
		kinds: ofWorks, reasons: []string{reasons.BeingDeleted, reasons.AppliedWorkBeingDeleted, reasons.Removing},
		means:  "An object on the member is being deleted. The agent applies it again afterwards.",
		remedy: "If the deletion does not end, the message names the finalizer that blocks it.",
	},
	{
		kinds: ofWorks, reasons: []string{reasons.ManifestNotAvailableYet, reasons.ManifestFailed},
		means:    "An object is applied, but not available yet.",
		remedy:   "The message has the cause if the member reports one. Otherwise check the Pods and Events of the object there.",
		onMember: []string{"kubectl get pods -A --field-selector status.phase!=Running", "kubectl get events -A --sort-by .lastTimestamp"},
	},
	{
		kinds: ofWorks, reasons: []string{
			reasons.ApplyFailed, reasons.ResourceNotAvailableYet, reasons.DiffReportingIncompleteOrFailed, reasons.NotAllWorkHaveBeenApplied,
			reasons.NotAllWorkAreAvailable, reasons.NotAllWorkHaveDiffReported,
			placement.ReasonSomeNotApplied, placement.ReasonSomeUnavailable, placement.ReasonSomeNotCompared,
		},
		means:  "Some placed objects are not applied, available or compared on some members.",
		remedy: "Read the cause in the message, or in the messages of the single objects.",
	},
	{
		kinds: ofPlacements, reasons: []string{
			reasons.RolloutNotStartedYet, reasons.RolloutStartedUnknown, reasons.OverriddenPending, reasons.WorkSynchronizedUnknown,
			reasons.ApplyPending, reasons.ResourceAvailableUnknown, reasons.DiffReportingPending,
		},
		means:  "The placement is rolling out.",
		remedy: "No action needed, unless the number of unavailable members reaches maxUnavailable. Then check these members.", passing: true,
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.KubeFleetLeftovers},
		means: "KubeFleet's hub has left objects of this placement.",
		remedy: "No action needed: its bindings and snapshots are deleted with the placement. If that hub is gone for good, you can delete " +
			"them earlier, as the message says.",
		aside: true,
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.StatusSyncFailed},
		means:  "The hub cannot write the copy of the status for users of the namespace.",
		remedy: "Read the cause in the message.",
	},
	{
		kinds: ofWorks, reasons: []string{
			placement.ReasonNotTrackable, reasons.ManifestNotTrackable, reasons.NotAllWorkAreAvailabilityTrackable,
		},
		means:  "The object is applied. Muster cannot check the health of its kind.",
		remedy: "No action needed.", aside: true,
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.Kept},
		means:  "The placement keeps its resources on a member that its policy no longer picks.",
		remedy: "No action needed.", aside: true,
	},
}
