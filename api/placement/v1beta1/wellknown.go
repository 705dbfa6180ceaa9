package v1beta1

// Labels, annotations, finalizers, condition types and reasons of the wire protocol.
const (
	// LabelParentCRP on a Work names its ClusterResourcePlacement or ResourcePlacement.
	LabelParentCRP = "kubernetes-fleet.io/parent-CRP"
	// LabelParentNamespace on a Work is the namespace of its ResourcePlacement.
	LabelParentNamespace = "kubernetes-fleet.io/parent-placement-namespace"
	// LabelParentBinding on a Work names its placement and member.
	LabelParentBinding = "kubernetes-fleet.io/parent-resource-binding"
	// LabelResourceIndex on a Work is the observedResourceIndex of the placement at the last write of
	// the Work.
	LabelResourceIndex = "kubernetes-fleet.io/parent-resource-snapshot-index"
	// AnnotationResourceSnapshot on a Work names its selection of resources. The Work holds a part of
	// it.
	AnnotationResourceSnapshot = "kubernetes-fleet.io/parent-resource-snapshot-name"
	// AnnotationClusterOverrides and AnnotationOverrides on a Work identify the
	// ClusterResourceOverrides and ResourceOverrides that changed it.
	AnnotationClusterOverrides = "kubernetes-fleet.io/parent-cluster-resource-override-snapshot-hash"
	AnnotationOverrides        = "kubernetes-fleet.io/parent-resource-override-snapshot-hash"
	// AnnotationOverriddenBy on a Work has a digest of each override that changed it, with spaces
	// between them. A Muster addition.
	AnnotationOverriddenBy = "muster/overridden-by"
	// AnnotationEnvelopes on a Work names the envelopes of its objects, one in a line, as in
	// "ResourceEnvelope.placement.kubernetes-fleet.io shop/web". A Muster addition.
	AnnotationEnvelopes = "muster/envelopes"
	// AnnotationEvicted on a Work is the UID of the eviction that removes it. The hub writes the Work
	// again only after its deletion. A Muster addition.
	AnnotationEvicted = "muster/evicted-by"
	// AnnotationDrain on a ClusterResourcePlacementEviction, "true", means: the hub evicts a cordoned
	// member, and only if another member takes the placement at once. A Muster addition.
	AnnotationDrain = "muster/drain"
	// AnnotationRemoved on a Work, "true", means: the hub deletes the Work, and its agent removes at
	// once the applied objects. If another client deletes a Work of the hub, the agent first waits for
	// the hub to write it again. A Muster addition.
	AnnotationRemoved = "muster/removed-by-hub"
	// AnnotationConfirmRemoval on a placement has a value given by the hub. It confirms a removal
	// without a cause known to the hub: resources that were selected and are missing are removed from
	// the members. A Muster addition.
	AnnotationConfirmRemoval = "muster/confirm-removal"
	// FinalizerWork on a Work lets the member's agent first remove the applied objects. The agent sets
	// it.
	FinalizerWork = "kubernetes-fleet.io/work-cleanup"
	// AnnotationRetains on a Work, "true", means: applied objects stay if FinalizerWork is removed
	// before the agent removes it. A new Work of the same name continues with them. Muster's agent
	// sets it together with the finalizer. A Muster addition.
	AnnotationRetains = "muster/retains-applied"
	// FinalizerPlacement on a placement lets the hub remove its Works first.
	FinalizerPlacement = "kubernetes-fleet.io/crp-cleanup"

	// ConditionApplied on a Work and its manifests reports whether they are on the member.
	ConditionApplied = "Applied"
	// ConditionAvailable on a Work and its manifests reports whether the applied objects work.
	ConditionAvailable = "Available"

	// ConditionDiffReported on a Work and its manifests reports whether manifests that are only
	// compared were compared.
	ConditionDiffReported = "DiffReported"
	// ReasonAllCompared and ReasonSomeNotCompared are its reasons on a Work.
	ReasonAllCompared     = "AllManifestsDiffReported"
	ReasonSomeNotCompared = "SomeManifestsHaveNotReportedDiff"

	// ReasonAllApplied and the others are the reasons of these conditions on a Work.
	ReasonAllApplied      = "AllManifestsApplied"
	ReasonSomeNotApplied  = "SomeManifestsAreNotApplied"
	ReasonAllAvailable    = "AllManifestsAvailable"
	ReasonSomeUnavailable = "SomeManifestsAreNotAvailable"
	// ReasonNotTrackable of Available=True: the agent cannot determine the availability of a kind
	// among the manifests.
	ReasonNotTrackable = "WorkNotTrackable"

	// ConditionScheduled on an entry of placementStatuses reports whether the member is picked, and
	// why. On the placement itself this and the other types have the prefix ClusterResourcePlacement
	// or ResourcePlacement.
	ConditionScheduled = "Scheduled"
	// ConditionResourceSelected on a placement is False while its selectors are invalid, and absent
	// otherwise.
	ConditionResourceSelected = "ResourceSelected"
	// ConditionRolloutStarted reports whether the hub has sent the current resources to the member.
	ConditionRolloutStarted = "RolloutStarted"
	// ConditionOverridden reports whether the overrides for the member could be applied to its
	// resources; true without overrides. On the placement it is also False, without an effect on later
	// conditions, while overrides are ignored because of the rights of their authors.
	ConditionOverridden = "Overridden"
	// ConditionWorkSynchronized reports whether the Works of the member are written.
	ConditionWorkSynchronized = "WorkSynchronized"
	// ConditionLeftoversRemoved on a placement is False while objects of KubeFleet's hub remain after
	// the takeover by Muster. Its message names them. Otherwise it is absent. A Muster addition.
	ConditionLeftoversRemoved = "LeftoversRemoved"
	// ConditionStatusSynced on a ClusterResourcePlacement with statusReportingScope
	// NamespaceAccessible reports whether the copy of its status is written.
	ConditionStatusSynced = "StatusSynced"
	// ConditionSupported on a placement is False while it uses fields unsupported by Muster. Its
	// message names the fields. Otherwise it is absent.
	ConditionSupported = "Supported"
)
