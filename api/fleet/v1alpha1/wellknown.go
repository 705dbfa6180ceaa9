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
	// LabelAgent on a Bundle and its BundleDeployment says that it is the agent of the Cluster itself, and in which version. A Muster addition.
	LabelAgent = "muster/agent-version"
	// LabelNonManagedAgent, with any value, keeps the hub's hands off the agent of a Cluster.
	LabelNonManagedAgent = "fleet.cattle.io/non-managed-agent"
	// AnnotationRequester on a ClusterRegistration is the user that the agent acts as.
	AnnotationRequester = "muster/requester"
	// FinalizerCluster on a Cluster lets the hub clean up before the Cluster goes.
	FinalizerCluster = "fleet.cattle.io/cluster-finalizer"
	// LabelClusterDisplayName on a Cluster is another name by which targets may call it.
	LabelClusterDisplayName = "management.cattle.io/cluster-display-name"
	// LabelClusterNamespace on a BundleDeployment is the workspace of its Cluster.
	LabelClusterNamespace = "fleet.cattle.io/cluster-namespace"
	// LabelBundleName on a BundleDeployment is the name of its Bundle.
	LabelBundleName = "fleet.cattle.io/bundle-name"
	// LabelBundleNamespace on a BundleDeployment is the workspace of its Bundle.
	LabelBundleNamespace = "fleet.cattle.io/bundle-namespace"
	// LabelContentName on a BundleDeployment is the Content that it is to deploy.
	LabelContentName = "fleet.cattle.io/content-name"
	// LabelRepoName on a Bundle and its BundleDeployments is the GitRepo that it came from.
	LabelRepoName = "fleet.cattle.io/repo-name"
	// LabelCommit on a Bundle and its BundleDeployments is the commit that it came from.
	LabelCommit = "fleet.cattle.io/commit"
	// FinalizerBundle on a Bundle lets the hub take its BundleDeployments away first.
	FinalizerBundle = "fleet.cattle.io/bundle-finalizer"
	// FinalizerBundleDeployment is upstream's on BundleDeployments. Muster's hub does not set it, and removes it where it stands.
	FinalizerBundleDeployment = "fleet.cattle.io/bundle-deployment-finalizer"
)

// Types of Secrets in the wire protocol.
const (
	// SecretTypeValues is the Secret with the values.yaml of a ClusterRegistrationToken.
	SecretTypeValues = "fleet.cattle.io/cluster-registration-values"
	// SecretTypeCredential is the Secret that answers an upstream agent.
	SecretTypeCredential = "fleet.cattle.io/agent-credential"
	// SecretTypeBundleValues is the Secret into which `fleet apply` puts the values of a Bundle. It has the Bundle's name and namespace.
	SecretTypeBundleValues = "fleet.cattle.io/bundle-values/v1alpha1"
	// SecretTypeDeployment is the Secret with the values of a BundleDeployment.
	SecretTypeDeployment = "fleet.cattle.io/bundle-deployment/v1alpha1"
)

// Keys of the Secret with the values of a BundleDeployment; each holds a JSON object.
const (
	// KeyValues are the values of options.
	KeyValues = "values"
	// KeyStagedValues are the values of stagedOptions.
	KeyStagedValues = "stagedValues"
)

// Values of encoding in a BundleResource.
const (
	// EncodingPlain is text as it is.
	EncodingPlain = ""
	// EncodingGzip is the base64 of the gzip of the file.
	EncodingGzip = "base64+gz"
)

// Values of targetCustomizationMode in a Bundle.
const (
	// FirstMatch takes the options of the first target that matches; it is the default.
	FirstMatch = "FirstMatch"
	// AllMatches merges the options of all targets that match, in order.
	AllMatches = "AllMatches"
)

// Types of conditions.
const (
	// ConditionReady is the condition that the Status columns show.
	ConditionReady = "Ready"
	// ConditionProcessed on a Bundle or ClusterGroup says whether the hub could make sense of it.
	ConditionProcessed = "Processed"
	// ConditionSupported on a Bundle is False if it uses a field that Muster does not implement, and names it.
	ConditionSupported = "Supported"
	// ConditionInstalled on a BundleDeployment says whether the release is installed.
	ConditionInstalled = "Installed"
	// ConditionDeployed on a BundleDeployment says whether the deployment was carried out.
	ConditionDeployed = "Deployed"
	// ConditionMonitored on a BundleDeployment says whether the resources are watched.
	ConditionMonitored = "Monitored"
	// ConditionImported on a Cluster says whether the hub has installed the agent that it was asked to by spec.kubeConfigSecret, and if that does
	// not join, why.
	ConditionImported = "Imported"
	// ConditionAgentUpToDate on a Cluster says whether its agent is as the hub wants it, and if not, why. A Muster addition.
	ConditionAgentUpToDate = "AgentUpToDate"
	// ConditionHubConfigured says whether the agent reaches the hub as the hub's settings say.
	ConditionHubConfigured = "HubConfigured"
)
