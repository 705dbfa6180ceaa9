package v1alpha1

import "time"

// Labels and annotations of the wire protocol.
const (
	// LabelManaged marks the objects that the hub created and may delete again.
	LabelManaged = "fleet.cattle.io/managed"
	// LabelCluster names the Cluster of an object; member namespaces have an annotation of the same
	// key.
	LabelCluster = "fleet.cattle.io/cluster"
	// AnnotationClusterNamespace names the workspace of that Cluster.
	AnnotationClusterNamespace = "fleet.cattle.io/cluster-namespace"
	// AnnotationRegistration names the ClusterRegistration of an identity.
	AnnotationRegistration = "fleet.cattle.io/cluster-registration"
	// AnnotationRegistrationNamespace names its workspace.
	AnnotationRegistrationNamespace = "fleet.cattle.io/cluster-registration-namespace"
	// LabelRegistrationToken on a ClusterRegistration names its token, as written by the agent.
	LabelRegistrationToken = "fleet.cattle.io/registration-token"
	// LabelCreatedByAgentPod is the one reserved label that an agent may request.
	LabelCreatedByAgentPod = "fleet.cattle.io/created-by-agent-pod"
	// LabelClusterManagement, if not empty, stops the hub from managing a Cluster or
	// ClusterRegistration.
	LabelClusterManagement = "fleet.cattle.io/cluster-management"
	// LabelClusterAPI: "true" on a workspace registers the clusters created by Cluster API there,
	// "false" on the kubeconfig Secret of one excludes it. A Muster addition.
	LabelClusterAPI = "muster/cluster-api"
	// AnnotationConfirmRemoval on a Bundle confirms the removal of an unchanged Bundle from many
	// Clusters, with a value from the hub's message. A Muster addition.
	AnnotationConfirmRemoval = "muster/confirm-removal"
	// AnnotationRemovalBrake on the Namespace of a workspace replaces the hub's removalBrake.share for
	// its Bundles. The share is the percentage, 0 to 100, of a Bundle's Clusters that may lose it
	// without confirmation. With 100 the hub holds nothing back. A Muster addition.
	AnnotationRemovalBrake = "muster/removal-brake"
	// AnnotationBundlesFrom on a Namespace consents to the BundleNamespaceMappings of other
	// namespaces, listed with commas between them. A Muster addition.
	AnnotationBundlesFrom = "muster/bundles-from"
	// AnnotationKubeconfigFor on a kubeconfig Secret lists its users in other namespaces, with commas
	// between them. A workspace stands for all of its Clusters, workspace/cluster for one. A Muster
	// addition.
	AnnotationKubeconfigFor = "muster/kubeconfig-for"
	// LabelKubeconfigReferenceableFrom on a kubeconfig Secret names a workspace whose Clusters may use
	// it. Rancher Fleet reads it from 0.17 on.
	LabelKubeconfigReferenceableFrom = "fleet.cattle.io/kubeconfig-referenceable-from"
	// AnnotationAccessFor on a kubeconfig Secret lists the tools that may have a copy of it, with
	// commas between them: argocd, flux, inventory. A Muster addition.
	AnnotationAccessFor = "muster/access-for"
	// AnnotationAccessSecret on a Cluster or MemberCluster names the kubeconfig Secret for these
	// tools. It is in the workspace of the Cluster, or for a MemberCluster in the hub's own namespace.
	// The default is the kubeConfigSecret of the Cluster. A Muster addition.
	AnnotationAccessSecret = "muster/access-secret"
	// LabelAccess on a Secret of the hub names the tool that it is for. AnnotationAccessOf names the
	// Cluster or MemberCluster, as namespace/name. Muster additions.
	LabelAccess        = "muster/access"
	AnnotationAccessOf = "muster/access-of"
	// LabelWorkspace on such a Secret names the workspace of the Cluster. A Muster addition.
	LabelWorkspace = "muster/workspace"
	// LabelAgent marks the Bundle and the BundleDeployment of the Cluster's own agent, with the
	// agent's version. A Muster addition.
	LabelAgent = "muster/agent-version"
	// LabelNonManagedAgent, with any value, stops the hub from managing the agent of a Cluster.
	LabelNonManagedAgent = "fleet.cattle.io/non-managed-agent"
	// AnnotationEarlierError on a BundleDeployment is the digest of the error in its status when the
	// hub wrote another deployment ID. While the status still has that error, it belongs to the
	// previous deployment. A Muster addition.
	AnnotationEarlierError = "muster/earlier-error"
	// AnnotationCordoned on a Cluster or MemberCluster, with the value true, keeps new deliveries from
	// it. Present ones stay and are updated. A Muster addition.
	AnnotationCordoned = "muster/cordoned"
	// AnnotationDrained on a cordoned Cluster or MemberCluster, with the value true: muster drain has
	// moved its placements to other members.
	AnnotationDrained = "muster/drained"
	// AnnotationDrainProgress on a cordoned Cluster or MemberCluster is the progress of a drain, as
	// JSON with numbers and times. The draining process writes it as its user, and removes it at the
	// end. A Muster addition.
	AnnotationDrainProgress = "muster/drain-progress"
	// AnnotationQuarantined on a Cluster or MemberCluster leaves its member only the heartbeat and the
	// report. Nothing is delivered, changed or removed there while the annotation stands. Every value
	// counts except "false". AnnotationQuarantineReason beside it says why. Users with the verb
	// quarantine set both. Muster additions.
	AnnotationQuarantined      = "muster/quarantined"
	AnnotationQuarantineReason = "muster/quarantine-reason"
	// AnnotationQuarantinedBy beside AnnotationQuarantined is the user who has set the latter. An
	// admission policy of the chart writes it, and refuses other names. A Muster addition.
	AnnotationQuarantinedBy = "muster/quarantined-by"
	// AnnotationPaused on a Cluster, MemberCluster or placement, with the value true, holds back all
	// changes: what is there stays, and nothing new arrives. For a Cluster it is the same as
	// spec.paused. A Muster addition.
	AnnotationPaused = "muster/paused"
	// AnnotationTaints on a Cluster or MemberCluster lists taints as kubectl does, with commas between
	// them: "dedicated=gpu:NoSchedule,old:NoSchedule". What does not tolerate all of them gets nothing
	// new there. The taints of a MemberCluster's spec count besides. A Muster addition.
	AnnotationTaints = "muster/taints"
	// MarkProtected, "true", as a label or annotation of a Cluster, MemberCluster, token or workspace
	// keeps the object from being deleted. A Muster addition.
	MarkProtected = "muster/protected"
	// AnnotationLost on a Cluster or MemberCluster without heartbeats is the time of the taint
	// muster/lost:NoSchedule, by the hub's clock. The hub sets it, and removes it after the next
	// heartbeat. A Muster addition.
	AnnotationLost = "muster/lost"
	// AnnotationLostRemoved beside AnnotationLost says why the hub deletes the Cluster or
	// MemberCluster. Its deliveries then stay on the member. A Muster addition.
	AnnotationLostRemoved = "muster/lost-removed"
	// AnnotationLostTaintAfter and AnnotationLostRemoveAfter on the Namespace of a workspace replace
	// the hub's lostMembers.taintAfter and removeAfter for its Clusters, in the same form: 720h. 0
	// turns the step off. Muster additions.
	AnnotationLostTaintAfter  = "muster/lost-taint-after"
	AnnotationLostRemoveAfter = "muster/lost-remove-after"
	// AnnotationFailureThreshold and AnnotationSuccessThreshold on the Namespace of a workspace
	// replace the hub's healthCheck.failureThreshold and successThreshold for its Clusters. Each is a
	// number of results in a row, from 1 to 60. Muster additions.
	AnnotationFailureThreshold = "muster/health-failure-threshold"
	AnnotationSuccessThreshold = "muster/health-success-threshold"
	// LabelHasMembers, "true", on the Namespace of a workspace with Clusters keeps it from being
	// deleted by accident. The hub writes it. A Muster addition.
	LabelHasMembers = "muster/has-members"
	// AnnotationDeleteWithMembers, "true", on the Namespace of a workspace lets users delete it with
	// its Clusters. A Muster addition.
	AnnotationDeleteWithMembers = "muster/delete-with-members"
	// AnnotationLabelsFromFacts on a Cluster or MemberCluster lists the facts of the member that
	// become labels, with commas between them. It replaces the hub's own list. A Muster addition.
	AnnotationLabelsFromFacts = "muster/labels-from-facts"
	// AnnotationFactLabels on a Cluster or MemberCluster holds, as JSON, the labels that the hub made
	// from facts. The hub removes them when they are not wanted any more. A Muster addition.
	AnnotationFactLabels = "muster/fact-labels"
	// AnnotationFromClusterAPI on a Cluster holds, as JSON, the labels and annotations that the hub
	// copied from the cluster of Cluster API. The hub removes them when they are not wanted any more.
	// A Muster addition.
	AnnotationFromClusterAPI = "muster/from-cluster-api"
	// AnnotationPausedUntilLeft marks a cluster of Cluster API that the hub has paused. The hub
	// resumes it once its Cluster has left, at the latest at this time, in RFC 3339. A Muster
	// addition.
	AnnotationPausedUntilLeft = "muster/paused-until-left"
	// AnnotationDisplayName on a Cluster or MemberCluster is a name for people, of up to 63
	// characters. The name of the object never changes. A Muster addition.
	AnnotationDisplayName = "muster/display-name"
	// AnnotationDescription on a Cluster or MemberCluster describes it in up to 1024 characters. A
	// Muster addition.
	AnnotationDescription = "muster/description"
	// AnnotationRotate on a ClusterRegistrationToken replaces its credential whenever the value
	// changes; the time of the change is a good value. A Muster addition.
	AnnotationRotate = "muster/rotate"
	// AnnotationRotateOverlap on a ClusterRegistrationToken is how long the replaced credential stays
	// valid, such as 2h; by default 24h, and at most 720h. A Muster addition.
	AnnotationRotateOverlap = "muster/rotate-overlap"
	// AnnotationRequester on a ClusterRegistration is the user that the agent acts as.
	AnnotationRequester = "muster/requester"
	// AnnotationApprovedBy on a ClusterRegistration is the user who last set AnnotationApproved,
	// written by an admission policy of the hub's chart.
	AnnotationApprovedBy = "muster/approved-by"
	// AnnotationAgentKey on a Cluster is the fingerprint of the key that holds it. On a MemberCluster
	// it is the fingerprint of the key that the hub issues credentials to.
	AnnotationAgentKey = "muster/agent-key"
	// AnnotationRestoredKey on a MemberCluster from a backup is the public key of its agent, in
	// base64. The restored hub issues a credential to the agent, sealed to this key. The hub removes
	// the annotation once the agent has come. A Muster addition.
	AnnotationRestoredKey = "muster/restored-agent-key"
	// AnnotationAgentKeyUsed on a Cluster is the newest granted request of its key. The value has the
	// time in microseconds since 1970, by the agent's clock, the UID of the request and the
	// fingerprint of the key. The hub refuses an older request, or a copy. A Muster addition.
	AnnotationAgentKeyUsed = "muster/agent-key-used"
	// AnnotationAcceptCredential on a Cluster or MemberCluster with the condition Cloned is the
	// sequence of an older credential. The agent with that credential keeps the Cluster or
	// MemberCluster.
	AnnotationAcceptCredential = "muster/accept-credential"
	// AnnotationApproved on a ClusterRegistration that waits for approval approves it ("true") or
	// denies it ("false"). On a Cluster in a workspace with member approval, it permits deliveries of
	// Bundles and placements ("true") or no new ones ("false").
	AnnotationApproved = "muster/approved"
	// AnnotationApprovalReason beside AnnotationApproved says why, in at most 512 characters. It
	// takes the verb approve, too. A Muster addition.
	AnnotationApprovalReason = "muster/approval-reason"
	// LabelApproveMembers: "true" on a workspace stops deliveries to each Cluster until a user
	// approves it. A Muster addition.
	LabelApproveMembers = "muster/approve-members"
	// LabelPrefixStamped begins the keys of labels that no request may bring: a
	// ClusterRegistrationToken stamps them, or an administrator sets them. A Muster addition.
	LabelPrefixStamped = "stamped.muster/"
	// AnnotationRegistrationLabels on a Cluster lists, as JSON, the labels stamped by a token, and the
	// requested labels that were dropped. The hub writes it, and no agent can. A Muster addition.
	AnnotationRegistrationLabels = "muster/registration-labels"
	// AnnotationCreatedByToken on a Cluster marks it as created for a request. The value is the
	// request's ClusterRegistrationToken; empty if the request named none. A Muster addition.
	AnnotationCreatedByToken = "muster/created-by-token"
	// FinalizerCluster on a Cluster lets the hub clean up before the Cluster goes.
	FinalizerCluster = "fleet.cattle.io/cluster-finalizer"
	// LabelClusterDisplayName on a Cluster is another name for use in targets.
	LabelClusterDisplayName = "management.cattle.io/cluster-display-name"
	// LabelClusterNamespace on a BundleDeployment is the workspace of its Cluster.
	LabelClusterNamespace = "fleet.cattle.io/cluster-namespace"
	// LabelBundleName on a BundleDeployment is the name of its Bundle.
	LabelBundleName = "fleet.cattle.io/bundle-name"
	// LabelBundleNamespace on a BundleDeployment is the workspace of its Bundle.
	LabelBundleNamespace = "fleet.cattle.io/bundle-namespace"
	// LabelContentName on a BundleDeployment is its Content.
	LabelContentName = "fleet.cattle.io/content-name"
	// DefaultBranch is the branch of a GitRepo without branch and revision.
	DefaultBranch = "master"
	// DefaultGitSecret is the Secret of a GitRepo without clientSecretName, if it exists.
	DefaultGitSecret = "gitcredential"
	// LabelRepoName on a Bundle and its BundleDeployments is their GitRepo.
	LabelRepoName = "fleet.cattle.io/repo-name"
	// LabelHelmOpName on a Bundle and its BundleDeployments is the HelmOp that it came from.
	LabelHelmOpName = "fleet.cattle.io/fleet-helm-name"
	// LabelCommit on a Bundle and its BundleDeployments is the commit that it came from.
	LabelCommit = "fleet.cattle.io/commit"
	// LabelCreatedByDisplayName on a GitRepo, and on its Bundle, is the author in Rancher's dashboard.
	// No member receives it.
	LabelCreatedByDisplayName = "fleet.cattle.io/created-by-display-name"
	// FinalizerBundle on a Bundle lets the hub delete its BundleDeployments first.
	FinalizerBundle = "fleet.cattle.io/bundle-finalizer"
	// FinalizerBundleDeployment is upstream's on BundleDeployments. Muster's hub does not set it, and
	// removes it.
	FinalizerBundleDeployment = "fleet.cattle.io/bundle-deployment-finalizer"
)

// Types of Secrets in the wire protocol.
const (
	// SecretTypeValues is the Secret with the values.yaml of a ClusterRegistrationToken.
	SecretTypeValues = "fleet.cattle.io/cluster-registration-values"
	// SecretTypeLastingToken is Muster's own: an empty Secret with a token bound to it. The token ends
	// with the deletion of the Secret.
	SecretTypeLastingToken = "muster/lasting-token"
	// SecretTypeCredential is the Secret that answers an upstream agent.
	SecretTypeCredential = "fleet.cattle.io/agent-credential"
	// SecretTypeBundleValues is the Secret with the values of a Bundle, written by `fleet apply`. It
	// has the Bundle's name and namespace.
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
	// EncodingPlain is unencoded text.
	EncodingPlain = ""
	// EncodingGzip is the base64 of the gzip of the file.
	EncodingGzip = "base64+gz"
)

// Values of targetCustomizationMode in a Bundle.
const (
	// FirstMatch takes the options of the first matching target; it is the default.
	FirstMatch = "FirstMatch"
	// AllMatches merges the options of all matching targets, in order.
	AllMatches = "AllMatches"
)

// Values of helm.crds, for the definitions in the directory crds/ of a chart.
const (
	// CRDsCreate creates missing definitions, and leaves existing ones as they are; it is the default.
	CRDsCreate = "Create"
	// CRDsCreateReplace also replaces existing definitions of the release.
	CRDsCreateReplace = "CreateReplace"
	// CRDsSkip leaves all definitions to others.
	CRDsSkip = "Skip"
)

// The limits of AnnotationRotateOverlap.
const (
	DefaultRotateOverlap = 24 * time.Hour
	MaxRotateOverlap     = 720 * time.Hour
)

// Types of conditions.
const (
	// ConditionReady is the condition in the Status columns.
	ConditionReady = "Ready"
	// ConditionTTLGranted on a ClusterRegistrationToken is False if the API server grants shorter
	// credentials than spec.ttl; else it is absent.
	ConditionTTLGranted = "TTLGranted"
	// ConditionRotated on a ClusterRegistrationToken reports whether the requested rotation of its
	// credential is done; absent if none was ever requested.
	ConditionRotated = "Rotated"
	// ConditionAttributed on a ClusterRegistration is False if the hub does not know the requester;
	// else it is absent.
	ConditionAttributed = "Attributed"
	// ConditionProcessed on a Bundle or ClusterGroup reports whether the hub could process it.
	ConditionProcessed = "Processed"
	// ConditionSupported on a Bundle is False if it uses a field that Muster does not implement, and
	// names the field. On a kind without effect in Muster it is always False, and names the
	// replacement.
	ConditionSupported = "Supported"
	// ConditionInstalled on a BundleDeployment reports whether the release is installed.
	ConditionInstalled = "Installed"
	// ConditionDeployed on a BundleDeployment reports whether the deployment was carried out.
	ConditionDeployed = "Deployed"
	// ConditionMonitored on a BundleDeployment reports whether the resources are watched.
	ConditionMonitored = "Monitored"
	// ConditionCRDsCurrent on a BundleDeployment is False if definitions on the member differ from
	// crds/ of the chart, and names them. Else it is absent. A Muster addition.
	ConditionCRDsCurrent = "CRDsCurrent"
	// ConditionImported on a Cluster reports whether the hub has installed the agent by
	// spec.kubeConfigSecret, and the cause if that agent does not join.
	ConditionImported = "Imported"
	// ConditionAgentUpToDate on a Cluster reports whether its agent has the desired version and
	// settings, with the cause if not. A Muster addition.
	ConditionAgentUpToDate = "AgentUpToDate"
	// ConditionReconciled on a Cluster reports whether the hub has processed the settings of its
	// agent, as with Rancher Fleet's hub. AgentUpToDate reports whether the agent has them.
	ConditionReconciled = "Reconciled"
	// ConditionLabelsAccepted on a Cluster is False if requested labels were dropped, and lists them
	// with the causes. It is True if its token has stamped labels and none was dropped; else absent. A
	// Muster addition.
	ConditionLabelsAccepted = "LabelsAccepted"
	// ConditionLeftFirst on a Cluster is False while the deletion of its cluster of Cluster API waits
	// for it. It stays False if it has not left in time. Else it is absent. A Muster addition.
	ConditionLeftFirst = "LeftFirst"
	// ConditionCloned reports that two agents have the credential of a Cluster. Either an older
	// credential was used after a newer one (CredentialSuperseded), or one agent waits while another
	// sends heartbeats (AgentWaiting). It is absent without a sign of that. A Muster addition.
	ConditionCloned = "Cloned"
	// ConditionQuarantined is True while a Cluster is quarantined, since its last transition; else it
	// is absent. A Muster addition.
	ConditionQuarantined = "Quarantined"
	// ConditionInitialized on a Cluster is False while its spec.initGates hold back deliveries, and
	// True after that. A Cluster that never had gates has none.
	ConditionInitialized = "Initialized"
	// ConditionDeliveryApproved on a Cluster is False while the Cluster waits for the approval that
	// its workspace requires; the message has the command. It is True after the approval, and absent
	// if none is required. A Muster addition.
	ConditionDeliveryApproved = "DeliveryApproved"
	// ConditionHubConfigured reports whether the agent uses the hub address of the hub's settings.
	ConditionHubConfigured = "HubConfigured"
)
