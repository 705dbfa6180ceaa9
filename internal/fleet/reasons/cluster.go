package reasons

// Reasons of Clusters.
const (
	// AgentOnline: the agent of a lost Cluster sends heartbeats again; an Event of a Cluster.
	AgentOnline = "AgentOnline"
	// AgentWaiting: a second agent with the credential of the Cluster waits for the first to
	// stop; Cloned of a Cluster.
	AgentWaiting = "AgentWaiting"
	// ApprovalRequired: the Cluster or the ClusterRegistration needs an approval;
	// DeliveryApproved of a Cluster, a ClusterRegistration, and an obstacle of a placement.
	ApprovalRequired = "ApprovalRequired"
	// Initialized: all init gates of the Cluster have opened; Initialized of a Cluster.
	Initialized = "Initialized"
	// LabelsDropped: the agent requested labels without permission; LabelsAccepted of a Cluster, and
	// an Event.
	LabelsDropped = "LabelsDropped"
	// LabelsStamped: the labels of the Cluster come from its registration token; LabelsAccepted
	// of a Cluster.
	LabelsStamped = "LabelsStamped"
	// LeaveRefused: the API server refuses to delete a Cluster whose machines Cluster API deletes;
	// LeftFirst of a Cluster, and an Event.
	LeaveRefused = "LeaveRefused"
	// LeavesFirst: a Cluster leaves before Cluster API deletes its machines; LeftFirst of a Cluster,
	// and an Event.
	LeavesFirst = "LeavesFirst"
	// LeftLate: Cluster API deletes the machines of a Cluster that has not left in time; LeftFirst of
	// a Cluster, and an Event.
	LeftLate = "LeftLate"
	// MachinesGo: a Cluster has left, and Cluster API deletes its machines; an Event of the cluster of
	// Cluster API.
	MachinesGo = "MachinesGo"
	// ManagedElsewhere: a label of the Cluster names another manager, and this hub leaves the
	// Cluster alone; Ready of a Cluster.
	ManagedElsewhere = "ManagedElsewhere"
	// NamespaceReady: the member namespace exists; Processed of a Cluster.
	NamespaceReady = "NamespaceReady"
	// NeverJoined: the hub deleted a Cluster made for a registration request, because no agent
	// has sent a heartbeat; an Event of a Cluster.
	NeverJoined = "NeverJoined"
	// NotFromClusterAPI: a Cluster has the name of a cluster of Cluster API and uses another
	// kubeconfig; an Event of a Cluster.
	NotFromClusterAPI = "NotFromClusterAPI"
	// NotInitialized: the init gates of the Cluster hold back deliveries; Initialized of a
	// Cluster, and an obstacle of a placement.
	NotInitialized = "NotInitialized"
	// WaitCheckIn: no agent has registered as the Cluster and sent a heartbeat yet; Ready of a
	// Cluster.
	WaitCheckIn = "WaitCheckIn"
)
