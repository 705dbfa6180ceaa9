package v1beta1

// Labels, finalizers and condition types of the wire protocol.
const (
	// LabelFleetResource marks what the hub made for a MemberCluster.
	LabelFleetResource = "kubernetes-fleet.io/is-fleet-resource"
	// LabelMemberName on a MemberCluster repeats its name, so that it can be selected.
	LabelMemberName = "kubernetes-fleet.io/member-name"
	// FinalizerMemberCluster on a MemberCluster lets the hub see the member off before the record goes.
	FinalizerMemberCluster = "kubernetes-fleet.io/membercluster-finalizer"
	// ConditionReadyToJoin says whether everything is prepared for the member's agent.
	ConditionReadyToJoin = "ReadyToJoin"
	// ConditionJoined says whether the member's agent has joined; on a MemberCluster and on an agent's status.
	ConditionJoined = "Joined"
	// ConditionHealthy says whether the member's agent is alive and its API server well; likewise.
	ConditionHealthy = "Healthy"
	// AnnotationLeavePolicy on a MemberCluster or a Cluster says what becomes of what was placed on it when it leaves: Delete or Orphan. A
	// MemberCluster that does not say is emptied, a Cluster is not.
	AnnotationLeavePolicy = "muster/leave-policy"
	// AnnotationRevoked on a MemberCluster or a Cluster takes away at once whatever access its member has, and lets no agent in while the annotation
	// stands. Any value counts but "false" and none. Whoever may edit the record sets it, which no member may. A Muster addition.
	AnnotationRevoked = "muster/revoked"
	// AnnotationRevokedBy beside AnnotationRevoked is the user who has set that, and AnnotationIdentityBy on a MemberCluster the one who wrote its
	// spec.identity. Admission policies of the chart write them down, and refuse anybody else's name. Muster additions.
	AnnotationRevokedBy  = "muster/revoked-by"
	AnnotationIdentityBy = "muster/identity-by"
	// AnnotationMemberEpoch on a MemberCluster or a Cluster is how often its member was revoked; 0 if absent. The name of the member namespace follows
	// from it. The hub writes it, and no member can. A label of the same key stands on what is delivered to a member that was revoked once. A Muster
	// addition.
	AnnotationMemberEpoch = "muster/member-epoch"
	// AnnotationLongDigests on a Cluster lists the last epochs in which the name of the member namespace has a digest of 64 bits. The hub writes
	// the list together with the epoch, and no member can. A Muster addition.
	AnnotationLongDigests = "muster/long-digest-epochs"
	// AnnotationWaitingAgent on the Lease of a member names an agent that waits because another one beats, in the words of holderIdentity, and when it last
	// said so. It is the agent's word about itself. A Muster addition.
	AnnotationWaitingAgent = "muster/waiting-agent"
	// AnnotationRemoved on an InternalMemberCluster has the UIDs of the last BundleDeployments that the hub deleted from the member, the newest
	// last, separated by spaces. Its agent knows by that what the hub deleted while the agent was away. The hub writes it, and no member can. A
	// Muster addition.
	AnnotationRemoved = "muster/removed-bundledeployments"
	// ConditionSupported is False while the record asks for something that the hub cannot do, and says what; else there is none.
	ConditionSupported = "Supported"
	// ReasonLeaving is that of the condition Joined while a member leaves.
	ReasonLeaving = "Leaving"
	// ReasonRegistering is that of the condition Joined of an agent that has joined and registers with another token beside that.
	ReasonRegistering = "Registering"
	// ReasonInternalMemberClusterLeft is that of the condition Joined of an agent that has left.
	ReasonInternalMemberClusterLeft = "InternalMemberClusterLeft"
	// ConditionHubConfigured says whether the agent reaches the hub as the hub's settings say.
	ConditionHubConfigured = "HubConfigured"
	// ConditionLeftoversRemoved is False while there is something that KubeFleet's hub left on a record or of a placement when Muster took over from
	// it, and names it; else there is none. A Muster addition.
	ConditionLeftoversRemoved = "LeftoversRemoved"
	// ConditionCredentialExchanged on a MemberCluster says whether its agent acts with a credential that the hub has issued to the agent's key, in
	// exchange for the token of spec.identity, and if not, why; absent before an agent has reported. A Muster addition.
	ConditionCredentialExchanged = "CredentialExchanged"
	// ConditionCloned on a MemberCluster says that an older credential of the agent was in use after a newer one had been; absent if none was. A
	// Muster addition.
	ConditionCloned = "Cloned"
	// ConditionNamespacesCollected says whether the namespaces of a report are all that the member has. It is absent if its agent does not
	// collect them.
	ConditionNamespacesCollected = "NamespaceCollectionSucceeded"
	// ReasonNamespacesCollected and ReasonNamespacesDegraded are its reasons; the latter if there are more than a report names.
	ReasonNamespacesCollected = "Succeeded"
	ReasonNamespacesDegraded  = "Degraded"

	// ConditionPruned is False while a release whose BundleDeployment is gone cannot be removed, or is kept because it is not sure that it should
	// be; else there is none. On an agent's status and on the record of its member.
	ConditionPruned = "Pruned"
	// ReasonRemovalBlocked is that of the condition Pruned when something on the member keeps an object of a release.
	ReasonRemovalBlocked = "RemovalBlocked"
	// ReasonRemovalUnconfirmed is that of the condition Pruned when it is not known whether the hub took the BundleDeployment away.
	ReasonRemovalUnconfirmed = "RemovalUnconfirmed"
	// PropertyNodeCount is the number of nodes.
	PropertyNodeCount = "kubernetes-fleet.io/node-count"
)
