package reasons

// Reasons why a placement picks a member or not: the condition Scheduled of the member, and
// status.obstacles.
const (
	// AffinityNotMatched: the labels or properties of the member do not match the affinity.
	AffinityNotMatched = "AffinityNotMatched"
	// AgentCannotPlace: the Cluster has Rancher Fleet's agent, and this agent does not apply Works.
	AgentCannotPlace = "AgentCannotPlace"
	// Cordoned: an administrator keeps new deliveries from the member.
	Cordoned = "Cordoned"
	// Kept: the placement keeps a member but would not pick it now.
	Kept = "Kept"
	// NamespaceNotAdmitted: the member accepts no ResourcePlacement from the namespace.
	NamespaceNotAdmitted = "NamespaceNotAdmitted"
	// NamespaceNotFound: the member lacks the namespace of a ResourcePlacement.
	NamespaceNotFound = "NamespaceNotFound"
	// NoSuchMember: the policy names a missing member.
	NoSuchMember = "NoSuchMember"
	// NotJoined: the member has not joined the fleet; AgentUpToDate of a Cluster uses it too.
	NotJoined = "NotJoined"
	// NotNamed: the policy names other members.
	NotNamed = "NotNamed"
	// Outranked: the policy wants fewer members, and others rank higher.
	Outranked = "Outranked"
	// Paused: a user has paused the member or the placement, and nothing changes.
	Paused = "Paused"
	// Scheduled: the placement picks the member.
	Scheduled = "Scheduled"
	// TaintNotTolerated: the placement does not tolerate a taint of the member.
	TaintNotTolerated = "TaintNotTolerated"
	// TopologySpreadNotSatisfied: the member would break a topology spread constraint.
	TopologySpreadNotSatisfied = "TopologySpreadNotSatisfied"
	// Unhealthy: nothing is known about the health of the member yet.
	Unhealthy = "Unhealthy"
)
