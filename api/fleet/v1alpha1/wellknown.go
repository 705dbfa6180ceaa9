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
	// LabelClusterAPI: "true" on a workspace registers the clusters that Cluster API makes there, "false" on the kubeconfig Secret of one keeps that out. A
	// Muster addition.
	LabelClusterAPI = "muster/cluster-api"
	// AnnotationConfirmRemoval on a Bundle has a value that the hub has asked for: the Bundle is taken from many Clusters, although it has
	// not changed. A Muster addition.
	AnnotationConfirmRemoval = "muster/confirm-removal"
	// AnnotationRemovalBrake on the Namespace of a workspace replaces the hub's removalBrake.share
	// for the Bundles in it: the percentage, 0 to 100, of the Clusters with a Bundle that may lose it
	// without confirmation. With 100 nothing is held back. A Muster addition.
	AnnotationRemovalBrake = "muster/removal-brake"
	// AnnotationBundlesFrom on a Namespace consents to the BundleNamespaceMappings of other namespaces, which it lists with commas between them. A Muster
	// addition.
	AnnotationBundlesFrom = "muster/bundles-from"
	// AnnotationKubeconfigFor on a kubeconfig Secret lists, with commas between them, who of other namespaces may use it: a workspace for all of its
	// Clusters, or workspace/cluster for one. A Muster addition.
	AnnotationKubeconfigFor = "muster/kubeconfig-for"
	// LabelAgent on a Bundle and its BundleDeployment says that it is the agent of the Cluster itself, and in which version. A Muster addition.
	LabelAgent = "muster/agent-version"
	// LabelNonManagedAgent, with any value, keeps the hub's hands off the agent of a Cluster.
	LabelNonManagedAgent = "fleet.cattle.io/non-managed-agent"
	// AnnotationEarlierError on a BundleDeployment is the digest of the error that its status had when the hub wrote another deployment ID: as long
	// as the status says nothing else, the error is one of the deployment before. A Muster addition.
	AnnotationEarlierError = "muster/earlier-error"
	// AnnotationRequester on a ClusterRegistration is the user that the agent acts as.
	AnnotationRequester = "muster/requester"
	// AnnotationApprovedBy on a ClusterRegistration is the user who last set AnnotationApproved, as an admission policy of the hub's chart says.
	AnnotationApprovedBy = "muster/approved-by"
	// AnnotationAgentKey on a Cluster is the fingerprint of the key that holds it, on a MemberCluster that of the key to which the hub issues credentials.
	AnnotationAgentKey = "muster/agent-key"
	// AnnotationAgentKeyUsed on a Cluster is the newest request that was granted to its key: the time in microseconds since 1970, by the agent's clock,
	// the UID of the request and the fingerprint of the key. An older one, or a copy of it, is refused. A Muster addition.
	AnnotationAgentKeyUsed = "muster/agent-key-used"
	// AnnotationAcceptCredential on a Cluster or MemberCluster with the condition Cloned is the sequence of the older credential whose agent is to keep it.
	AnnotationAcceptCredential = "muster/accept-credential"
	// AnnotationApproved on a ClusterRegistration that waits for approval approves it ("true") or denies it ("false"). On a Cluster whose workspace
	// approves its members, it lets Bundles and placements be delivered ("true") or nothing new ("false").
	AnnotationApproved = "muster/approved"
	// LabelApproveMembers: "true" on a workspace has nothing delivered to a Cluster before somebody approves that. A Muster addition.
	LabelApproveMembers = "muster/approve-members"
	// LabelPrefixStamped begins the keys of labels that no request may bring: a ClusterRegistrationToken stamps them, or an admin sets them. A
	// Muster addition.
	LabelPrefixStamped = "stamped.muster/"
	// AnnotationRegistrationLabels on a Cluster says, as JSON, which of its labels a token has stamped, and which labels were asked for and
	// dropped. The hub writes it, and no agent can. A Muster addition.
	AnnotationRegistrationLabels = "muster/registration-labels"
	// AnnotationCreatedByToken on a Cluster says that the hub made it for a request, and with which ClusterRegistrationToken that was made; empty if
	// the request did not say. A Muster addition.
	AnnotationCreatedByToken = "muster/created-by-token"
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
	// LabelHelmOpName on a Bundle and its BundleDeployments is the HelmOp that it came from.
	LabelHelmOpName = "fleet.cattle.io/fleet-helm-name"
	// LabelCommit on a Bundle and its BundleDeployments is the commit that it came from.
	LabelCommit = "fleet.cattle.io/commit"
	// LabelCreatedByDisplayName on a GitRepo, and on a Bundle of it, is who made it, as Rancher's dashboard shows it. No member is told.
	LabelCreatedByDisplayName = "fleet.cattle.io/created-by-display-name"
	// FinalizerBundle on a Bundle lets the hub take its BundleDeployments away first.
	FinalizerBundle = "fleet.cattle.io/bundle-finalizer"
	// FinalizerBundleDeployment is upstream's on BundleDeployments. Muster's hub does not set it, and removes it where it stands.
	FinalizerBundleDeployment = "fleet.cattle.io/bundle-deployment-finalizer"
)

// Types of Secrets in the wire protocol.
const (
	// SecretTypeValues is the Secret with the values.yaml of a ClusterRegistrationToken.
	SecretTypeValues = "fleet.cattle.io/cluster-registration-values"
	// SecretTypeLastingToken is Muster's own: an empty Secret that a token is bound to, which ends when the Secret is deleted.
	SecretTypeLastingToken = "muster/lasting-token"
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
	// ConditionTTLGranted on a ClusterRegistrationToken is False if the API server grants credentials of less life than spec.ttl; else it is absent.
	ConditionTTLGranted = "TTLGranted"
	// ConditionAttributed on a ClusterRegistration is False if the hub does not know who made it; else it is absent.
	ConditionAttributed = "Attributed"
	// ConditionProcessed on a Bundle or ClusterGroup says whether the hub could make sense of it.
	ConditionProcessed = "Processed"
	// ConditionSupported on a Bundle is False if it uses a field that Muster does not implement, and names it; on a kind that Muster does nothing
	// with it is always False, and says what to use instead.
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
	// ConditionLabelsAccepted on a Cluster is False if labels that its agent asked for were dropped, and says which and why; True if its token has
	// stamped labels and none was dropped; absent if there is nothing to say. A Muster addition.
	ConditionLabelsAccepted = "LabelsAccepted"
	// ConditionCloned says that two agents have the credential of a Cluster: an older one was in use after a newer one had been (CredentialSuperseded), or one
	// agent waits while another beats (AgentWaiting). It is absent if there is no sign of that. A Muster addition.
	ConditionCloned = "Cloned"
	// ConditionDeliveryApproved on a Cluster is False while its workspace approves its members and nobody has approved this one, and says how to; True
	// if somebody has; absent if nobody has to. A Muster addition.
	ConditionDeliveryApproved = "DeliveryApproved"
	// ConditionHubConfigured says whether the agent reaches the hub as the hub's settings say.
	ConditionHubConfigured = "HubConfigured"
)
