package v1alpha1

// Labels and annotations of the wire protocol.
const (
	// LabelManaged marks everything that the hub made and may delete again.
	LabelManaged = "fleet.cattle.io/managed"
	// LabelCluster names the Cluster that an object belongs to; an annotation of the same key stands on member namespaces.
	LabelCluster = "fleet.cattle.io/cluster"
	// AnnotationClusterNamespace names the workspace of that Cluster.
	AnnotationClusterNamespace = "fleet.cattle.io/cluster-namespace"
	// AnnotationRegistration names the ClusterRegistration that an identity was issued for.
	AnnotationRegistration = "fleet.cattle.io/cluster-registration"
	// AnnotationRegistrationNamespace names its workspace.
	AnnotationRegistrationNamespace = "fleet.cattle.io/cluster-registration-namespace"
	// LabelRegistrationToken on a ClusterRegistration names the token it was made with, as the agent claims.
	LabelRegistrationToken = "fleet.cattle.io/registration-token"
	// LabelCreatedByAgentPod is the one reserved label that an agent may ask for.
	LabelCreatedByAgentPod = "fleet.cattle.io/created-by-agent-pod"
	// LabelClusterManagement, if not empty, keeps the hub's hands off a Cluster or ClusterRegistration.
	LabelClusterManagement = "fleet.cattle.io/cluster-management"
	// LabelClusterAPI: "true" on a workspace registers the clusters that Cluster API makes there. A Muster addition.
	LabelClusterAPI = "muster/cluster-api"
	// AnnotationRequester on a ClusterRegistration is the user that the agent acts as.
	AnnotationRequester = "muster/requester"
	// FinalizerCluster on a Cluster lets the hub clean up before the Cluster goes.
	FinalizerCluster = "fleet.cattle.io/cluster-finalizer"
)

// Types of Secrets in the wire protocol.
const (
	// SecretTypeValues is the Secret with the values.yaml of a ClusterRegistrationToken.
	SecretTypeValues = "fleet.cattle.io/cluster-registration-values"
	// SecretTypeCredential is the Secret that answers an upstream agent.
	SecretTypeCredential = "fleet.cattle.io/agent-credential"
)

// Types of conditions.
const (
	// ConditionReady is the condition that the Status columns show.
	ConditionReady = "Ready"
	// ConditionImported on a Cluster says whether the hub has installed the agent that it was asked to by spec.kubeConfigSecret.
	ConditionImported = "Imported"
	// ConditionHubConfigured says whether the agent reaches the hub as the hub's settings say.
	ConditionHubConfigured = "HubConfigured"
)
