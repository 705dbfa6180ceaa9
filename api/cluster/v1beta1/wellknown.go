package v1beta1

// Labels, finalizers and condition types of the wire protocol.
const (
	// LabelFleetResource marks the objects that the hub created for a MemberCluster.
	LabelFleetResource = "kubernetes-fleet.io/is-fleet-resource"
	// LabelMemberName on a MemberCluster repeats its name for label selectors.
	LabelMemberName = "kubernetes-fleet.io/member-name"
	// FinalizerMemberCluster on a MemberCluster lets the hub complete the member's leave first.
	FinalizerMemberCluster = "kubernetes-fleet.io/membercluster-finalizer"
	// FeatureUpgradedByUser in a report means: the chart of the agent refuses upgrades by the hub.
	FeatureUpgradedByUser = "UpgradedByUser"
	// ConditionReadyToJoin reports whether everything is prepared for the member's agent.
	ConditionReadyToJoin = "ReadyToJoin"
	// ConditionJoined reports whether the member's agent has joined; on a MemberCluster and on an
	// agent's status.
	ConditionJoined = "Joined"
	// ConditionHealthy reports whether the member's agent sends heartbeats, and its API server is
	// healthy; in the same two places.
	ConditionHealthy = "Healthy"
	// AnnotationLeavePolicy on a MemberCluster or a Cluster deletes or keeps the placed objects when
	// the member leaves: Delete or Orphan. The default is Delete for a MemberCluster and Orphan for a
	// Cluster.
	AnnotationLeavePolicy = "muster/leave-policy"
	// AnnotationUninstallAgent on a MemberCluster or a Cluster removes the agent from the cluster when
	// the member leaves: true. Every other value keeps it. A Muster addition.
	AnnotationUninstallAgent = "muster/uninstall-agent"
	// TaintUntilTrue is the value of a taint with an end. The key is the type of a condition: the hub
	// removes the taint as soon as that condition is True. A Muster addition.
	TaintUntilTrue = "UntilTrue"
	// AnnotationRevoked on a MemberCluster or a Cluster removes all access of its member at once.
	// While it is set, the hub admits no agent for the member. Every value counts except "false".
	// Users who may edit the object set it; no member may. A Muster addition.
	AnnotationRevoked = "muster/revoked"
	// AnnotationRevokedBy beside AnnotationRevoked is the user who has set the latter.
	// AnnotationIdentityBy on a MemberCluster is the author of its spec.identity. Admission policies
	// of the chart write both, and refuse other names. Muster additions.
	AnnotationRevokedBy  = "muster/revoked-by"
	AnnotationIdentityBy = "muster/identity-by"
	// AnnotationMemberEpoch on a MemberCluster or a Cluster is the number of its revocations; 0 if
	// absent. The name of the member namespace depends on it. The hub writes it, and no member can.
	// Deliveries to a member have a label of the same key after its first revocation. A Muster
	// addition.
	AnnotationMemberEpoch = "muster/member-epoch"
	// AnnotationLongDigests on a Cluster lists the last epochs whose member namespace has a name with
	// a digest of 64 bits. The hub writes the list together with the epoch, and no member can. A
	// Muster addition.
	AnnotationLongDigests = "muster/long-digest-epochs"
	// AnnotationWaitingAgent on the Lease of a member names an agent that waits because another one
	// sends heartbeats. The value has the form of holderIdentity, with the time of the last mark. The
	// agent itself writes it. A Muster addition.
	AnnotationWaitingAgent = "muster/waiting-agent"
	// AnnotationRemoved on an InternalMemberCluster has the UIDs of the last BundleDeployments that
	// the hub deleted from the member, the newest last, separated by spaces. From it the agent learns
	// the hub's deletions during its absence. The hub writes it, and no member can. A Muster addition.
	AnnotationRemoved = "muster/removed-bundledeployments"
	// ConditionSupported is False while the object requires something that the hub cannot do, and
	// names it; else it is absent.
	ConditionSupported = "Supported"
	// ReasonLeaving means: the member is leaving; Joined of a report.
	ReasonLeaving = "Leaving"
	// ReasonRegistering means: a joined agent registers with another token; Joined of a report.
	ReasonRegistering = "Registering"
	// ReasonInternalMemberClusterLeft means: the agent has left; Joined of a report.
	ReasonInternalMemberClusterLeft = "InternalMemberClusterLeft"
	// ConditionHubConfigured reports whether the agent uses the hub address of the hub's settings.
	ConditionHubConfigured = "HubConfigured"
	// ConditionLeftoversRemoved is False, and names the leftovers, while KubeFleet's hub has left
	// something on a membership object or of a placement. Otherwise it is absent. A Muster addition.
	ConditionLeftoversRemoved = "LeftoversRemoved"
	// ConditionDeletionValidated is False while exported services keep a deleted MemberCluster, and
	// True afterwards; absent if none kept it. A Muster addition.
	ConditionDeletionValidated = "DeletionValidated"
	// ValidationSkip is the mode that lets a deleted MemberCluster leave despite exported services.
	ValidationSkip = "Skip"
	// ConditionAgentUpToDate on a MemberCluster reports whether its agent has the version and the
	// settings of the hub, with the cause if not. A Muster addition.
	ConditionAgentUpToDate = "AgentUpToDate"
	// ConditionCredentialExchanged on a MemberCluster reports whether its agent uses a credential
	// issued to the agent's key, in exchange for the token of spec.identity. If not, it gives the
	// cause; absent before the agent's first report. A Muster addition.
	ConditionCredentialExchanged = "CredentialExchanged"
	// ConditionCloned on a MemberCluster reports that an older credential of the agent was used after
	// a newer one; absent if none was. A Muster addition.
	ConditionCloned = "Cloned"
	// ConditionQuarantined is True while a MemberCluster is quarantined, since its last transition;
	// else it is absent. A Muster addition.
	ConditionQuarantined = "Quarantined"
	// ConditionNamespacesCollected reports whether the namespaces of a report are complete. It is
	// absent if the agent does not collect them.
	ConditionNamespacesCollected = "NamespaceCollectionSucceeded"
	// ReasonNamespacesCollected and ReasonNamespacesDegraded are its reasons; the latter if there are
	// more than a report names.
	ReasonNamespacesCollected = "Succeeded"
	ReasonNamespacesDegraded  = "Degraded"

	// ConditionPruned is False while a release without its BundleDeployment cannot be removed, or is
	// kept because its removal is not confirmed. It is also False while a restored hub does not know a
	// delivery. Else it is absent. It is on an agent's status and on the membership object.
	ConditionPruned = "Pruned"
	// ReasonRemovalBlocked means: an object of a release cannot be removed from the member; Pruned.
	ReasonRemovalBlocked = "RemovalBlocked"
	// ReasonRemovalUnconfirmed means: the hub has not confirmed a BundleDeployment as deleted; Pruned.
	ReasonRemovalUnconfirmed = "RemovalUnconfirmed"
	// PropertyNodeCount is the number of nodes.
	PropertyNodeCount = "kubernetes-fleet.io/node-count"
)
