package v1beta1

// Labels, annotations, finalizers, condition types and reasons of the wire protocol.
const (
	// LabelParentCRP on a Work names the ClusterResourcePlacement, or the
	// ResourcePlacement, that it is of.
	LabelParentCRP = "kubernetes-fleet.io/parent-CRP"
	// LabelParentNamespace on a Work is the namespace of the ResourcePlacement that it is of.
	LabelParentNamespace = "kubernetes-fleet.io/parent-placement-namespace"
	// LabelParentBinding on a Work names the decision that placed it: the placement and the member.
	LabelParentBinding = "kubernetes-fleet.io/parent-resource-binding"
	// LabelResourceIndex on a Work is the observedResourceIndex of the placement when
	// the Work was written.
	LabelResourceIndex = "kubernetes-fleet.io/parent-resource-snapshot-index"
	// AnnotationResourceSnapshot on a Work names the selection of resources that it holds a part of.
	AnnotationResourceSnapshot = "kubernetes-fleet.io/parent-resource-snapshot-name"
	// AnnotationClusterOverrides and AnnotationOverrides on a Work identify the
	// ClusterResourceOverrides and ResourceOverrides that changed it.
	AnnotationClusterOverrides = "kubernetes-fleet.io/parent-cluster-resource-override-snapshot-hash"
	AnnotationOverrides        = "kubernetes-fleet.io/parent-resource-override-snapshot-hash"
	// AnnotationOverriddenBy on a Work has a digest of each override that changed it, with spaces
	// between them. A Muster addition.
	AnnotationOverriddenBy = "muster/overridden-by"
	// AnnotationEnvelopes on a Work names the envelopes that its objects come from, one in a line,
	// as in "ResourceEnvelope.placement.kubernetes-fleet.io shop/web". A Muster addition.
	AnnotationEnvelopes = "muster/envelopes"
	// AnnotationEvicted on a Work is the UID of the eviction that removes it: it is not written again
	// before it is gone. A Muster addition.
	AnnotationEvicted = "muster/evicted-by"
	// AnnotationRemoved on a Work, "true", says that the hub deletes it: its agent removes at once
	// what it applied. Of a Work that the hub placed and somebody else deletes, the agent waits
	// whether the hub writes it again. A Muster addition.
	AnnotationRemoved = "muster/removed-by-hub"
	// AnnotationConfirmRemoval on a placement has a value that the hub has asked for: what was
	// selected and is missing is removed from members, although the hub knows no cause for
	// that. A Muster addition.
	AnnotationConfirmRemoval = "muster/confirm-removal"
	// FinalizerWork on a Work lets the member's agent remove what it applied first. The agent sets it.
	FinalizerWork = "kubernetes-fleet.io/work-cleanup"
	// AnnotationRetains on a Work, "true", says that what is applied stays if somebody takes
	// FinalizerWork off before the agent does, and that a new Work of the same name goes on with it.
	// Muster's agent sets it together with the finalizer. A Muster addition.
	AnnotationRetains = "muster/retains-applied"
	// FinalizerPlacement on a placement lets the hub remove its Works first.
	FinalizerPlacement = "kubernetes-fleet.io/crp-cleanup"

	// ConditionApplied on a Work and its manifests says whether they are on the member.
	ConditionApplied = "Applied"
	// ConditionAvailable on a Work and its manifests says whether what was applied works.
	ConditionAvailable = "Available"

	// ConditionDiffReported on a Work and its manifests that are only compared says
	// whether that was done.
	ConditionDiffReported = "DiffReported"
	// ReasonAllCompared and ReasonSomeNotCompared are its reasons on a Work.
	ReasonAllCompared     = "AllManifestsDiffReported"
	ReasonSomeNotCompared = "SomeManifestsHaveNotReportedDiff"

	// ReasonAllApplied and the others are the reasons of these conditions on a Work.
	ReasonAllApplied      = "AllManifestsApplied"
	ReasonSomeNotApplied  = "SomeManifestsAreNotApplied"
	ReasonAllAvailable    = "AllManifestsAvailable"
	ReasonSomeUnavailable = "SomeManifestsAreNotAvailable"
	// ReasonNotTrackable of Available=True: the agent does not know when a kind among the
	// manifests is available.
	ReasonNotTrackable = "WorkNotTrackable"

	// ConditionScheduled on an entry of placementStatuses says whether the member is picked, and
	// why. On the placement itself this and the other types stand behind ClusterResourcePlacement
	// or ResourcePlacement.
	ConditionScheduled = "Scheduled"
	// ConditionResourceSelected on a placement is False while its selectors cannot be meant,
	// and absent otherwise.
	ConditionResourceSelected = "ResourceSelected"
	// ConditionRolloutStarted says whether the member was asked for the resources as they are now.
	ConditionRolloutStarted = "RolloutStarted"
	// ConditionOverridden says whether the overrides for the member could be applied to its
	// resources; true if there are none. On the placement it is also False, without an effect on
	// later conditions, while overrides are ignored because of the rights of their authors.
	ConditionOverridden = "Overridden"
	// ConditionWorkSynchronized says whether the Works of the member are written.
	ConditionWorkSynchronized = "WorkSynchronized"
	// ConditionLeftoversRemoved on a placement is False while there is something of it
	// that KubeFleet's hub left when Muster took over from it, and names it; else there is
	// none. A Muster addition.
	ConditionLeftoversRemoved = "LeftoversRemoved"
	// ConditionStatusSynced on a ClusterResourcePlacement whose statusReportingScope is
	// NamespaceAccessible says whether the copy of its status is written.
	ConditionStatusSynced = "StatusSynced"
	// ConditionSupported on a placement is False while it asks for something that Muster does not do,
	// and names the fields; else there is none.
	ConditionSupported = "Supported"
)
