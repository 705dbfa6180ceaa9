package reasons

// Reasons of the condition Imported of Clusters. Ready shows them too until an agent joins.
const (
	// APIServerURLMissing: the hub's settings have no address for the agent.
	APIServerURLMissing = "APIServerURLMissing"
	// AccountMissing: the ServiceAccount for the import of the hub's own cluster does not exist; an
	// Event of a Cluster.
	AccountMissing = "AccountMissing"
	// AddressRefused: the hub does not call the address in the kubeconfig, because it is a
	// loopback or local address.
	AddressRefused = "AddressRefused"
	// AgentCrashing: the agent ends again and again.
	AgentCrashing = "AgentCrashing"
	// AgentEnding: the cluster has an agent of another Cluster, and the hub ends this agent first.
	AgentEnding = "AgentEnding"
	// AgentImageNotPulled: the nodes cannot pull the image of the agent.
	AgentImageNotPulled = "AgentImageNotPulled"
	// AgentNotJoined: the agent runs on the cluster and has not joined.
	AgentNotJoined = "AgentNotJoined"
	// AgentNotStarted: a kubelet does not start the Pod of the agent.
	AgentNotStarted = "AgentNotStarted"
	// AgentOutOfMemory: the agent exceeds its memory limit.
	AgentOutOfMemory = "AgentOutOfMemory"
	// AgentOfOtherHub: another hub has taken over the cluster, and this hub leaves the agent alone.
	AgentOfOtherHub = "AgentOfOtherHub"
	// AgentRefused: the API server of the cluster refuses the Pod of the agent.
	AgentRefused = "AgentRefused"
	// AgentRemoved: the agent was removed from the cluster or scaled to nothing.
	AgentRemoved = "AgentRemoved"
	// AgentUnschedulable: no node takes the Pod of the agent.
	AgentUnschedulable = "AgentUnschedulable"
	// AgentWrongArchitecture: the image of the agent is not for the architecture of the node.
	AgentWrongArchitecture = "AgentWrongArchitecture"
	// AlreadyRegistered: the kubeconfig leads to another member of the fleet.
	AlreadyRegistered = "AlreadyRegistered"
	// ConsentMissing: the owner of a namespace has not agreed. Imported of a Cluster with a Secret in
	// the namespace; Ready of a BundleNamespaceMapping for it.
	ConsentMissing = "ConsentMissing"
	// ContextMissing: the kubeconfig has no context, or no current one.
	ContextMissing = "ContextMissing"
	// CredentialExpired: the client certificate or the token in the kubeconfig has expired.
	CredentialExpired = "CredentialExpired"
	// CredentialMissing: the user in the kubeconfig has neither a token nor a client
	// certificate.
	CredentialMissing = "CredentialMissing"
	// Imported: the hub has installed the agent, and it has joined.
	Imported = "Imported"
	// InsecureEndpoint: the server in the kubeconfig is not https, or is not verified.
	InsecureEndpoint = "InsecureEndpoint"
	// InvalidCertificate: the certificate of the server is not valid for its name or time.
	InvalidCertificate = "InvalidCertificate"
	// InvalidKubeconfig: the Secret holds no valid kubeconfig.
	InvalidKubeconfig = "InvalidKubeconfig"
	// InvalidSettings: the settings for the agent are not valid.
	InvalidSettings = "InvalidSettings"
	// IsHub: the kubeconfig leads to the hub itself.
	IsHub = "IsHub"
	// KubeconfigMissing: the Secret has no kubeconfig under the key value.
	KubeconfigMissing = "KubeconfigMissing"
	// KubeconfigReadsFiles: the kubeconfig refers to files.
	KubeconfigReadsFiles = "KubeconfigReadsFiles"
	// KubeconfigRunsCode: the kubeconfig runs a program or an authentication plugin.
	KubeconfigRunsCode = "KubeconfigRunsCode"
	// NotAnAPIServer: the server in the kubeconfig does not answer as a Kubernetes API server.
	NotAnAPIServer = "NotAnAPIServer"
	// PullSecretMissing: a Secret in global.imagePullSecrets of the hub's chart does not exist.
	PullSecretMissing = "PullSecretMissing"
	// Queued: the hub installs agents on other clusters first.
	Queued = "Queued"
	// Refused: the API server of the cluster refuses a request, or the hub cannot make it.
	Refused = "Refused"
	// RightsMissing: the user of the kubeconfig lacks rights to install an agent.
	RightsMissing = "RightsMissing"
	// SecretMissing: the Secret in spec.kubeConfigSecret does not exist.
	SecretMissing = "SecretMissing"
	// SecretNamespaceNotAllowed: the Cluster may not use the namespace of the Secret.
	SecretNamespaceNotAllowed = "SecretNamespaceNotAllowed"
	// TokenRefused: the registration token of the agent cannot be used.
	TokenRefused = "TokenRefused"
	// Unauthorized: the cluster does not accept the credential in the kubeconfig.
	Unauthorized = "Unauthorized"
	// UnknownAuthority: the kubeconfig does not know the authority of the server's certificate.
	UnknownAuthority = "UnknownAuthority"
	// Unreachable: the server in the kubeconfig does not answer. An agent without a connection to the
	// hub has a state of the same name.
	Unreachable = "Unreachable"
	// WaitingForToken: the hub has not created the registration token of the agent yet.
	WaitingForToken = "WaitingForToken"
)
