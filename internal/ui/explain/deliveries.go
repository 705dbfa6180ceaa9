package explain

import (
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// deliveryCauses explains problems of the deployment of a Bundle.
var deliveryCauses = []cause{
	{
		kinds: []string{kindBundleDeployment, kindWork}, reasons: []string{reasonNew},
		means:  "The agent of the member has not looked at the object yet.",
		remedy: "If that lasts longer than a moment, explain the member: its agent does not run, or does not reach the hub.",
		onHub:  []string{"muster get"},
	},
	{
		kinds: ofBundles, reasons: []string{reasons.Invalid, reasons.Error, reasons.InvalidMapping, reasons.UnsupportedFields},
		means:  "The Bundle asks for something that the hub cannot do. What is deployed stays as it is.",
		remedy: "Correct the field that the message names.",
		onHub:  []string{"kubectl -n NAMESPACE edit bundle NAME"},
	},
	{
		kinds: ofBundles, reasons: []string{reasons.InvalidForSomeClusters},
		means: "For some Clusters the options or values of the Bundle cannot be made, mostly because a template names a label that they do not " +
			"have.",
		remedy: "Correct the template or the Clusters that the message names.",
	},
	{
		kinds: ofBundles, reasons: []string{reasons.RemovalHeld},
		means: "A change of something else than the Bundle, such as a ClusterGroup or labels, would take it from many Clusters at once. What " +
			"is deployed stays as it is.",
		remedy: "Take that change back; or, if it is meant, confirm the removal.",
		onHub: []string{"kubectl -n NAMESPACE get clustergroups,clusters.fleet.cattle.io --show-labels",
			"muster confirm bundles NAMESPACE/NAME"},
	},
	{
		kinds: ofBundles, reasons: []string{reasons.TakeoverHeld},
		means: "Another hub has deployed the Bundle, and by the rules of this one some Clusters would lose it or get another version. What is " +
			"deployed stays as it is.",
		remedy: "Look at what the message names; if it is meant, confirm it, or change the Bundle.",
		onHub:  []string{"kubectl -n NAMESPACE get bundles.fleet.cattle.io NAME -o yaml", "muster confirm bundles NAMESPACE/NAME"},
	},
	{
		kinds: ofBundles, reasons: []string{reasons.ConsentMissing},
		means:  "The Bundle takes something from a namespace whose owner has not agreed to that.",
		remedy: "Let the owner label it, as the message says.",
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.DeployerCrashed},
		means: "The process that renders this Bundle on the member is ended, or what deploys there ends on it, because a template takes too " +
			"much memory or never ends.",
		remedy: "Change the chart. Other Bundles are not affected, and this one is tried ever more seldom.",
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.ReleaseConflict, reasons.ObjectConflict},
		means:    "A release, or an object, of that name on the member belongs to somebody else, and is left alone.",
		remedy:   "Give the Bundle another release name or namespace, remove the other, or set helm.takeOwnership if it is to be taken over.",
		onMember: []string{"helm list -A"},
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{"Waiting"},
		means:  "The deployment waits for another one that it depends on.",
		remedy: "See to the one that the message names.",
		onHub:  []string{"kubectl -n NAMESPACE get bundledeployments"},
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.ContentUnreadable, reasons.ContentRefused},
		means: "The agent cannot read from the hub what is to be deployed, or what it reads is damaged.",
		remedy: "If the hub refuses it, somebody has taken the right away, which the hub gives again; if it is damaged, change the Bundle, and " +
			"it is written anew.",
		onHub: []string{hubLog},
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{
			reasons.ChartVersionRefused, reasons.ChartUnreadable, reasons.ResourcesInvalid, reasons.ValuesInvalid,
		},
		means:  "What the Bundle holds cannot be made a release of: its chart, its files or its values.",
		remedy: "Correct what the message names in the Bundle.",
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.MoveFailed},
		means:    "The release has another name or namespace now and is deployed there, but cannot be removed where it was.",
		remedy:   "The message names the object that stays and why: a right, or a finalizer.",
		onMember: []string{"helm list -A --all"},
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{
			reasons.Error, reasons.DeployFailed, reasons.CorrectionFailed, reasons.FieldNotImplemented,
		},
		means: "Helm cannot install or upgrade the release on the member.",
		remedy: "The message is what Helm says: mostly an object that the API server of the member refuses, or a right that the account lacks. " +
			"A release that goes on running, because it cannot be deployed under its new name or namespace, is removed when it can; if both " +
			"cannot be there at once, delete the Bundle first.",
		onMember: []string{"helm list -A --all", agentLog},
	},
	{
		kinds: ofDeliveries, reasons: []string{"ErrApplied"},
		means:  "A Bundle could not be deployed.",
		remedy: "The message says which, where and why.",
		onHub:  []string{"kubectl get bundledeployments -A"},
	},
	{
		kinds: ofDeliveries, reasons: []string{"NotReady"},
		means:    "A Bundle is deployed, and not all of its objects are ready.",
		remedy:   "Look at the objects that the message names on the member: their Pods, their events.",
		onMember: []string{"kubectl get pods -A --field-selector status.phase!=Running", "kubectl get events -A --sort-by .lastTimestamp"},
	},
	{
		kinds: ofDeliveries, reasons: []string{"Modified"},
		means:  "Somebody has changed on the member what a Bundle deployed.",
		remedy: "Have the Bundle set it back with correctDrift.enabled, or change the Bundle.",
	},
	{
		kinds: ofDeliveries, reasons: []string{"WaitApplied", "OutOfSync", "Pending"},
		means:  "A Bundle is being rolled out: members have not deployed it yet, or wait for others.",
		remedy: "It goes on by itself, unless as many members as rolloutStrategy.maxUnavailable allows are not ready: see to those.",
		onHub:  []string{"kubectl get bundledeployments -A"}, passing: true,
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.Unwatched, reasons.DeployerNotRunning},
		means:    "Nobody watches what is deployed, so that a change of it is not noticed.",
		remedy:   "The delivery process of the member does not run: what its agent logs says why.",
		onMember: []string{agentLog},
	},
	{
		kinds: ofBundles, reasons: []string{reasons.NoTarget},
		means:  "The Bundle matches no Cluster and is deployed nowhere.",
		remedy: "Compare its targets with the labels of the Clusters in its workspace.",
		onHub:  []string{"kubectl -n NAMESPACE get clusters.fleet.cattle.io --show-labels"}, aside: true,
	},
}

// placementCauses explains why selected objects of a placement are not on its members.
var placementCauses = []cause{
	{
		kinds: ofPlacements, reasons: []string{
			reasons.InvalidResourceSelectors, reasons.InvalidPolicy, reasons.FieldsNotSupported, reasons.InvalidManifest,
		},
		means:  "The placement asks for something that cannot be meant, or that the hub does not do.",
		remedy: "Correct the field that the message names.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.RemovalUnfounded},
		means: "Something that was placed is not selected any more, and the hub knows of nobody who removed it: it cannot read it, or may not. " +
			"What is placed stays as it is.",
		remedy: "See to what the message says of it; if members are to lose it, confirm the removal: muster confirm placements, with the name " +
			"of the placement.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.WorkFull},
		means: "The objects of a Work have grown beyond what can be stored, and the member's agent does not hand objects over: one that moved " +
			"to another Work would be removed and made again. What is placed stays as it is.",
		remedy: "Upgrade the agent, make the objects smaller, or select some of them by another placement.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.AuthorUnknown, reasons.AuthorRightsUnknown, reasons.AuthorMayNotRead},
		means: "The hub reads what is placed with the rights of the author of the placement, and counts overrides and envelopes with the " +
			"rights of theirs. These rights do not suffice or are not known.",
		remedy: "Give the author that the message names the right, or have a user who has it write the placement, the override or the envelope " +
			"again. If members are to lose what is missing, confirm the removal: muster confirm placements, with the name of the placement.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.OverrideNotPermitted},
		means: "The author of an override may not make the same change on the hub. The override is ignored; members on which it was applied " +
			"before keep what they have.",
		remedy: "Give the author the right that the message names, have a user who has it change the override, or delete the override.",
		onHub:  []string{"kubectl get clusterresourceoverrides,resourceoverrides -A"},
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.EnvelopeNotPermitted},
		means: "The author of an envelope may not create and update on the hub what the envelope holds. The object is left out; if it was " +
			"placed before, what is placed stays as it is.",
		remedy: "Give the author the right that the message names, have a user who has it change the envelope, or take the object out of the " +
			"envelope.",
		onHub: []string{"kubectl get clusterresourceenvelopes,resourceenvelopes -A"},
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.PolicyMissing},
		means: "The hub does not know who writes placements, because the admission policy that notes it is not there. What is placed stays as " +
			"it is.",
		remedy: "Bring the policy back with the chart fleet.",
		onHub:  []string{"helm -n cattle-fleet-system upgrade fleet fleet/fleet --reset-then-reuse-values"},
	},
	{
		kinds: ofPlacements, reasons: []string{
			reasons.SchedulingPolicyUnfulfilled, reasons.ScheduleFailed, reasons.AffinityNotMatched, reasons.TaintNotTolerated,
			reasons.TopologySpreadNotSatisfied, reasons.Outranked, reasons.NotNamed, reasons.NoSuchMember,
		},
		means:  "Fewer members can be picked than the policy asks for.",
		remedy: "Compare the affinity, tolerations and spread of the policy with the members, as the message says of each.",
		onHub:  []string{"kubectl get memberclusters --show-labels"},
	},
	{
		kinds: ofPlacements, reasons: []string{
			reasons.NotJoined, reasons.Unhealthy, reasons.Leaving, reasons.AgentCannotPlace, reasons.NamespaceNotFound, reasons.NamespaceNotAdmitted,
			reasons.ApprovalRequired, reasons.AgentLost, reasons.AgentUnhealthy, reasons.AgentLeft, reasons.Revoked,
		},
		means:  "A member that was meant cannot be picked as it is.",
		remedy: "Explain that member, and see to what it says.",
	},
	{
		kinds: ofPlacements, reasons: []string{
			reasons.RolloutNotStartedYet, reasons.RolloutStartedUnknown, reasons.OverriddenPending, reasons.WorkSynchronizedUnknown,
			reasons.ApplyPending, reasons.ResourceAvailableUnknown, reasons.DiffReportingPending,
		},
		means:  "The placement is being rolled out.",
		remedy: "It goes on by itself, unless as many members as maxUnavailable allows are not available: see to those.", passing: true,
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.SchedulePending},
		means:  "The placement has the type PickFixed and names no member.",
		remedy: "Name members in spec.policy.clusterNames.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.WorkNotSynchronizedYet, reasons.SyncWorkFailed},
		means:  "The hub cannot write what is placed into the namespace of a member.",
		remedy: "The message says what stands in the way. The hub tries again.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.RolloutControlledByExternalController},
		means: "spec.strategy.type is External: members get changes by staged update runs, and no run has reached the members that the message " +
			"names. They keep what they have.",
		remedy: "Create a staged update run, or see what the run waits for; to have the hub roll changes out by itself, set spec.strategy.type " +
			"to RollingUpdate.",
		onHub: []string{"kubectl get clusterstagedupdateruns", "kubectl get stagedupdateruns -A"},
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.OverriddenFailed},
		means:  "An override cannot be applied to what is placed.",
		remedy: "Correct the path or the value of the override that the message names.",
		onHub:  []string{"kubectl get clusterresourceoverrides", "kubectl get resourceoverrides -A"},
	},
	{
		kinds: []string{kindWork}, reasons: []string{reasons.InvalidManifest},
		means:  "What is placed holds something that is no object of Kubernetes.",
		remedy: "Correct it where it is selected, such as in an envelope; the message names it.",
	},
	{
		kinds: ofWorks, reasons: []string{reasons.DeployerNotRunning},
		means:    "Nothing is applied on the member, because its delivery process does not run.",
		remedy:   "The message says why; so does what its agent logs, which of a Cluster is the Deployment fleet-agent in cattle-fleet-system.",
		onMember: []string{memberLog},
	},
	{
		kinds: ofWorks, reasons: []string{reasons.KindNotServed, reasons.NamespaceMissing},
		means:  "The member does not have the kind, or the namespace, of an object that is placed there.",
		remedy: "Place the definition or the namespace, too; the object follows by itself.",
	},
	{
		kinds: ofWorks, reasons: []string{
			reasons.AppliedByAnotherWork, reasons.OwnedByOthers, reasons.NotTakenOver, reasons.FieldConflict, reasons.Contested,
			reasons.AppliedWorkOfAnotherHub,
		},
		means:  "An object of that name on the member belongs to somebody else, or somebody else writes its fields.",
		remedy: "Remove the other, or say with whenToTakeOver and the apply strategy of the placement that it is to be taken over.",
	},
	{
		kinds: ofWorks, reasons: []string{
			reasons.ImmutableField, reasons.Forbidden, reasons.QuotaExceeded, reasons.Rejected, reasons.WorkOfAnotherMember,
			reasons.ManifestNotApplied, "ManifestApplyFailed",
		},
		means:  "The API server of the member refuses an object.",
		remedy: "The message is what it answers: a field that cannot change, a quota, a policy, or a right that the agent lacks.",
	},
	{
		kinds: ofWorks, reasons: []string{reasons.Drifted, reasons.DifferencesFound, "FoundDrifts"},
		means:  "Somebody has changed on the member what was placed, and the placement says to leave it so.",
		remedy: "Set whenToTakeOver or comparisonOption so that it is set back, or change what is placed.",
	},
	{
		kinds: ofWorks, reasons: []string{reasons.BeingDeleted, reasons.AppliedWorkBeingDeleted, reasons.Removing},
		means:  "An object on the member is being deleted. It is applied again when it is gone.",
		remedy: "If it does not go, the message names the finalizer that keeps it.",
	},
	{
		kinds: ofWorks, reasons: []string{reasons.ManifestNotAvailableYet, reasons.ManifestFailed},
		means:    "An object is applied and does not work yet.",
		remedy:   "Look at it on the member: its Pods, its events.",
		onMember: []string{"kubectl get pods -A --field-selector status.phase!=Running", "kubectl get events -A --sort-by .lastTimestamp"},
	},
	{
		kinds: ofWorks, reasons: []string{
			reasons.ApplyFailed, reasons.ResourceNotAvailableYet, reasons.DiffReportingIncompleteOrFailed, reasons.NotAllWorkHaveBeenApplied,
			reasons.NotAllWorkAreAvailable, reasons.NotAllWorkHaveDiffReported,
			placement.ReasonSomeNotApplied, placement.ReasonSomeUnavailable, placement.ReasonSomeNotCompared,
		},
		means:  "On some members not all that is placed is applied, available or compared.",
		remedy: "The message, or what is said of the single objects, tells which.",
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.KubeFleetLeftovers},
		means: "KubeFleet's hub has left objects of this placement.",
		remedy: "Nothing: its bindings and snapshots go with the placement. To delete them before, once that hub is gone for good, do as the " +
			"message says.",
		aside: true,
	},
	{
		kinds: ofPlacements, reasons: []string{reasons.StatusSyncFailed},
		means:  "The copy of the status that users of the namespace can read is not written.",
		remedy: "The message says what keeps it.",
	},
	{
		kinds: ofWorks, reasons: []string{
			placement.ReasonNotTrackable, reasons.ManifestNotTrackable, reasons.NotAllWorkAreAvailabilityTrackable, reasons.Kept,
		},
		means:  "It is applied, and nobody can tell whether it works, as its kind does not say.",
		remedy: "Nothing.", aside: true,
	},
}
