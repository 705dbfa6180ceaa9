package reasons

import clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"

// Reasons of both Clusters and MemberClusters.
const (
	// AccessEnded: another tool no longer has a kubeconfig of the member from the hub; an Event of a
	// Cluster or MemberCluster.
	AccessEnded = "AccessEnded"
	// AccessGiven: another tool has a kubeconfig of the member; an Event of a Cluster or
	// MemberCluster.
	AccessGiven = "AccessGiven"
	// AccessSecretTaken: a Secret or access provider of another owner has the same name as the hub's;
	// an Event of a Cluster or MemberCluster.
	AccessSecretTaken = "AccessSecretTaken"
	// AccessWithheld: the hub does not give another tool the kubeconfig of the member, although its
	// owner consents; an Event of a Cluster or MemberCluster.
	AccessWithheld = "AccessWithheld"
	// AddressUnreachable: the agent tried another address of the hub, failed, and uses the one
	// before; HubConfigured of a Cluster or MemberCluster.
	AddressUnreachable = "AddressUnreachable"
	// AgentHealthy: the agent sends heartbeats and the API server of its cluster is healthy; Healthy
	// of a Cluster in the inventory.
	AgentHealthy = "AgentHealthy"
	// AgentLeft: the agent has left the fleet; Ready of a Cluster, and an obstacle of a
	// placement.
	AgentLeft = "AgentLeft"
	// AgentLost: the agent has missed its heartbeats; Ready of a Cluster, Healthy of a MemberCluster,
	// an obstacle of a placement. Ready of a Bundle, if its other Clusters are ready.
	AgentLost = "AgentLost"
	// InvalidName: the namespace name derived from the name of the Cluster is not valid. Ready of a
	// Cluster, and a request for it.
	InvalidName = "InvalidName"
	// AgentStays: the member has left, and its agent stays on the cluster although a user required its
	// removal; an Event of a Cluster or MemberCluster.
	AgentStays = "AgentStays"
	// AgentTooOld: the agent does not know its member namespace and deploys nothing, or does not
	// report its route to the hub. Ready of a Cluster, HubConfigured of a member.
	AgentTooOld = "AgentTooOld"
	// AgentUnhealthy: the agent sends heartbeats, and the API server of its cluster is unhealthy.
	// Healthy of a MemberCluster and of a ClusterProfile, and an obstacle of a placement.
	AgentUnhealthy = "AgentUnhealthy"
	// ClusterJoined: the agent has joined; Joined of a Cluster in the inventory.
	ClusterJoined = "ClusterJoined"
	// ClusterProfileTaken: a ClusterProfile of the member's name belongs to another cluster
	// manager; an Event of a Cluster or MemberCluster.
	ClusterProfileTaken = "ClusterProfileTaken"
	// CredentialSuperseded: an older credential of the agent was used after a newer one; Cloned
	// of a Cluster or MemberCluster.
	CredentialSuperseded = "CredentialSuperseded"
	// DefinitionDeleted: the CustomResourceDefinition of the kind is being deleted, and the hub
	// removes nothing from members. Ready of a Bundle, and conditions and Events of members and
	// placements.
	DefinitionDeleted = "DefinitionDeleted"
	// AgentVersionChanged: the agent has another version than before; an Event of a Cluster or
	// MemberCluster.
	AgentVersionChanged = "AgentVersionChanged"
	// DrainStopped: a drain ended before all placements had left the member; annotation of a Cluster
	// or MemberCluster, and no condition.
	DrainStopped = "DrainStopped"
	// Draining: a drain moves the placements of the member; annotation of a Cluster or MemberCluster,
	// and no condition.
	Draining = "Draining"
	// FallbackInUse: the first address of the hub does not answer, and the agent uses a further one;
	// HubConfigured of a Cluster or MemberCluster.
	FallbackInUse = "FallbackInUse"
	// ForcedLeave: the member did not answer in time, and the hub ended the membership without
	// it; an Event of a Cluster or MemberCluster.
	ForcedLeave = "ForcedLeave"
	// IdentityMissing: the ServiceAccount of the agent does not exist; Ready of a Cluster,
	// ReadyToJoin of a MemberCluster.
	IdentityMissing = "IdentityMissing"
	// InUse: the agent reaches the hub by the hub's current settings; HubConfigured of a Cluster or
	// MemberCluster.
	InUse = "InUse"
	// KubernetesVersionChanged: the member has another version of Kubernetes than before; an
	// Event of a Cluster or MemberCluster.
	KubernetesVersionChanged = "KubernetesVersionChanged"
	// LeavePolicyInvalid: the leave policy has an unknown value; Supported of a Cluster or
	// MemberCluster.
	LeavePolicyInvalid = "LeavePolicyInvalid"
	// Leaving: the member is being deleted and leaves the fleet. Ready of a Cluster, Joined of a
	// MemberCluster and of a report, and an obstacle of a placement.
	Leaving = clusterv1beta1.ReasonLeaving
	// PlacementDecisionTaken: a PlacementDecision of another owner has a name that the hub needs; an
	// Event of a placement or ClusterGroup.
	PlacementDecisionTaken = "PlacementDecisionTaken"
	// LostKept: the API server refuses to delete a lost member; an Event of a Cluster or
	// MemberCluster.
	LostKept = "LostKept"
	// LostRemoved: the hub removes a lost member, as configured; an Event of a Cluster or
	// MemberCluster.
	LostRemoved = "LostRemoved"
	// LostTainted: the hub taints a lost member, as configured; an Event of a Cluster or
	// MemberCluster.
	LostTainted = "LostTainted"
	// LostTaintRemoved: the hub removes the taint of LostTainted; an Event of a Cluster or
	// MemberCluster.
	LostTaintRemoved = "LostTaintRemoved"
	// Moving: the agent has not moved to the hub's other address yet; HubConfigured of a Cluster
	// or MemberCluster.
	Moving = "Moving"
	// NamespaceTaken: the member namespace exists and belongs to another owner; conditions of a
	// Cluster or MemberCluster, and a ClusterRegistration.
	NamespaceTaken = "NamespaceTaken"
	// NamespaceTerminating: the member namespace, or the namespace of a release, is being deleted;
	// conditions of a Cluster or MemberCluster, a ClusterRegistration, and a BundleDeployment.
	NamespaceTerminating = "NamespaceTerminating"
	// NotVerified: the agent's own settings turn the verification of the hub off; HubConfigured
	// of a Cluster or MemberCluster.
	NotVerified = "NotVerified"
	// PropertiesSkipped: the ClusterProfile lacks some properties, because they are too long; an Event
	// of a Cluster or MemberCluster.
	PropertiesSkipped = "PropertiesSkipped"
	// ReportTooLarge: the agent's report is larger than the hub accepts, and the hub reads only
	// its health; Supported of a Cluster or MemberCluster.
	ReportTooLarge = "ReportTooLarge"
	// Revoked: the member's access is revoked; Ready of a Cluster, Joined of a MemberCluster, a
	// ClusterRegistration, and an obstacle of a placement.
	Revoked = "Revoked"
	// Revoking: the member is revoked, and its agent still has some access to the hub; Ready of a
	// Cluster, Joined of a MemberCluster.
	Revoking = "Revoking"
	// Quarantined: the member keeps its heartbeat and gets nothing else. The condition Quarantined of
	// a Cluster or MemberCluster has it, and Ready of a Cluster. So has Ready of a deleted Bundle, a
	// ClusterRegistration of the same agent, and an obstacle of a placement.
	Quarantined = "Quarantined"
	// Quarantining: the member is quarantined, and the hub has yet to remove one of its rights;
	// Quarantined of a Cluster or MemberCluster.
	Quarantining = "Quarantining"
	// QuarantineEnded: a user has ended the quarantine of a member; an Event of a Cluster or
	// MemberCluster.
	QuarantineEnded = "QuarantineEnded"
)
