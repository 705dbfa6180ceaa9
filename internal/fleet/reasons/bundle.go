package reasons

// Reasons of Bundles, ClusterGroups, BundleNamespaceMappings and Policies.
const (
	// ClustersNotReady: Clusters of the group are not ready; Ready of a ClusterGroup.
	ClustersNotReady = "ClustersNotReady"
	// Counted: the hub has counted the Clusters of the group; Processed of a ClusterGroup.
	Counted = "Counted"
	// DependencyCircle: the Bundle depends on itself, through others; Processed of a Bundle.
	DependencyCircle = "DependencyCircle"
	// DependencyMissing: the Bundle depends on a missing Bundle; Processed of a Bundle.
	DependencyMissing = "DependencyMissing"
	// Error: the deployment failed, or the Bundle is not valid; Ready of a Bundle, Deployed and
	// Ready of a BundleDeployment.
	Error = "Error"
	// Invalid: the spec is not valid; Processed of a Bundle, Ready of a BundleNamespaceMapping or a
	// Policy.
	Invalid = "Invalid"
	// InvalidForSomeClusters: the options or values of the Bundle are not valid for some Clusters;
	// Processed of a Bundle.
	InvalidForSomeClusters = "InvalidForSomeClusters"
	// InvalidMapping: targets of the Bundle depend on an invalid BundleNamespaceMapping; Processed of
	// a Bundle.
	InvalidMapping = "InvalidMapping"
	// InvalidSelector: spec.selector is not valid; Processed and Ready of a ClusterGroup.
	InvalidSelector = "InvalidSelector"
	// TargetOutranked: a target with doNotDeploy comes after the first matching target of a Cluster,
	// and has no effect; Processed of a Bundle.
	TargetOutranked = "TargetOutranked"
	// TargetUnmatched: some targets match Clusters, and others match none; Processed of a Bundle.
	TargetUnmatched = "TargetUnmatched"
	// NoTarget: the Bundle has no targets, or they match no Cluster; Ready of a Bundle.
	NoTarget = "NoTarget"
	// Open: the mapping opens the selected namespaces; Ready of a BundleNamespaceMapping.
	Open = "Open"
	// PolicyViolation: the Bundle breaks a rule of the Policies of its namespace; Processed and Ready
	// of a Bundle.
	PolicyViolation = "PolicyViolation"
	// Processed: the hub has written the BundleDeployments; Processed of a Bundle.
	Processed = "Processed"
	// Ready: the object is in order; Ready of a Bundle, a Cluster, a ClusterGroup, a Policy or a
	// ClusterRegistrationToken.
	Ready = "Ready"
	// RemovalHeld: many Clusters would lose the Bundle, and a user must confirm the removal; Processed
	// of a Bundle.
	RemovalHeld = "RemovalHeld"
	// Supported: the hub implements every field in use; Supported of a Bundle or a Policy.
	Supported = "Supported"
	// TakeoverHeld: another hub has deployed the Bundle, this hub would change it, and a user must
	// confirm the change; Processed of a Bundle.
	TakeoverHeld = "TakeoverHeld"
	// UnsupportedFields: the hub does not implement a field in use; Supported of a Bundle or a
	// Policy.
	UnsupportedFields = "UnsupportedFields"
)
