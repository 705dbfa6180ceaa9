package v1alpha1

// Labels and condition types of the Cluster Inventory API.
const (
	// LabelClusterManager on a ClusterProfile repeats spec.clusterManager.name, so that
	// it can be selected.
	LabelClusterManager = "x-k8s.io/cluster-manager"
	// LabelClusterSet on a namespace names the ClusterSet that all of its ClusterProfiles belong to.
	// It is the key of the upstream code and the authoritative one.
	LabelClusterSet = "multicluster.x-k8s.io/clusterset"
	// LabelClusterSetOfKEP is the key that the text of KEP-4322 has for the same.
	LabelClusterSetOfKEP = "clusterset.multicluster.x-k8s.io"
	// ConditionControlPlaneHealthy says whether the control plane of the cluster is well.
	ConditionControlPlaneHealthy = "ControlPlaneHealthy"
	// ConditionJoined says whether the cluster is under management.
	ConditionJoined = "Joined"
)

// The longest name and value that a property may have, in characters.
const (
	MaxPropertyName  = 253
	MaxPropertyValue = 1024
)
