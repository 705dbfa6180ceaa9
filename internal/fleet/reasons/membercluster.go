package reasons

// Reasons of MemberClusters.
const (
	// AgentHasNoKey: the agent has no key, so the hub cannot issue a credential; CredentialExchanged
	// of a MemberCluster.
	AgentHasNoKey = "AgentHasNoKey"
	// AgentUnseen: the agent has not sent a heartbeat yet; Healthy of a MemberCluster.
	AgentUnseen = "AgentUnseen"
	// AnotherKey: an agent with a key other than the member's requests a credential;
	// CredentialExchanged of a MemberCluster.
	AnotherKey = "AnotherKey"
	// Exchanged: the agent uses a credential issued by the hub to its key; CredentialExchanged of a
	// MemberCluster.
	Exchanged = "Exchanged"
	// Exchanging: the hub issues a credential to the agent's key; CredentialExchanged of a
	// MemberCluster.
	Exchanging = "Exchanging"
	// IdentityInUse: spec.identity is the identity of another member; ReadyToJoin of a
	// MemberCluster.
	IdentityInUse = "IdentityInUse"
	// IdentityInvalid: spec.identity is no permitted identity for an agent; ReadyToJoin of a
	// MemberCluster.
	IdentityInvalid = "IdentityInvalid"
	// DeletionValid: the exported services that kept a deleted MemberCluster are gone, or no longer
	// count; DeletionValidated of a MemberCluster.
	DeletionValid = "DeletionValid"
	// ServicesExported: services that the member exports keep a deleted MemberCluster;
	// DeletionValidated of a MemberCluster.
	ServicesExported = "ServicesExported"
	// ServicesUnreadable: the hub cannot read the exported services of a deleted MemberCluster, and
	// keeps it; DeletionValidated of a MemberCluster.
	ServicesUnreadable = "ServicesUnreadable"
	// KubeFleetFinalizers: KubeFleet's hub has left finalizers on the object; LeftoversRemoved
	// of a MemberCluster.
	KubeFleetFinalizers = "KubeFleetFinalizers"
	// MemberClusterHealthy: the agent sends heartbeats and its API server is healthy; Healthy of a
	// MemberCluster.
	MemberClusterHealthy = "MemberClusterHealthy"
	// MemberClusterJoinStateUnknown: the agent has not reported whether it has joined; Joined of
	// a MemberCluster.
	MemberClusterJoinStateUnknown = "MemberClusterJoinStateUnknown"
	// MemberClusterJoined: the member has joined the fleet; Joined of a MemberCluster.
	MemberClusterJoined = "MemberClusterJoined"
	// MemberClusterLeft: the member has left the fleet; Joined of a MemberCluster.
	MemberClusterLeft = "MemberClusterLeft"
	// MemberClusterReadyToJoin: the hub has prepared the objects for the member to join; ReadyToJoin
	// of a MemberCluster.
	MemberClusterReadyToJoin = "MemberClusterReadyToJoin"
	// SwitchedOff: the exchange of the credential, or the management of the agent's version, is
	// turned off; CredentialExchanged of a MemberCluster, AgentUpToDate of a Cluster.
	SwitchedOff = "SwitchedOff"
	// TaintRemoved: the hub removed a taint, because the condition in the taint is True; an Event of a
	// MemberCluster.
	TaintRemoved = "TaintRemoved"
)
