package v1alpha1

// Labels and condition types of the Cluster Inventory API.
const (
	// LabelClusterManager on a ClusterProfile repeats spec.clusterManager.name for label selectors.
	LabelClusterManager = "x-k8s.io/cluster-manager"
	// LabelClusterSet on a namespace names the ClusterSet of all its ClusterProfiles. The upstream
	// code uses this key, and it is authoritative.
	LabelClusterSet = "multicluster.x-k8s.io/clusterset"
	// LabelClusterSetOfKEP is the key for the same in the text of KEP-4322.
	LabelClusterSetOfKEP = "clusterset.multicluster.x-k8s.io"
	// ConditionControlPlaneHealthy reports whether the control plane of the cluster is healthy.
	ConditionControlPlaneHealthy = "ControlPlaneHealthy"
	// ConditionJoined reports whether the cluster is under management.
	ConditionJoined = "Joined"
)

// The maximum lengths of a property's name and value, in characters.
const (
	MaxPropertyName  = 253
	MaxPropertyValue = 1024
)
