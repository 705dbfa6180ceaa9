package explain

import (
	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// importCauses explains failures of the hub to install an agent through a kubeconfig. The condition
// Imported of a Cluster shows the reasons. Ready shows them too, until an agent joins.
var importCauses = []cause{
	{
		kinds: ofClusters, reasons: []string{reasons.IsHub, reasons.AlreadyRegistered, reasons.AgentEnding},
		means:  "The cluster of the kubeconfig is already in the fleet.",
		remedy: "Give the Cluster the kubeconfig of the right cluster, or remove the other member with muster leave.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentOfOtherHub},
		means: "The agent of the Cluster works for another hub of the same fleet. This hub may be an old one, replaced by a restored hub.",
		remedy: "If this hub is the old one, uninstall it. If it must have the cluster again, promote it, and raise " +
			"spec.redeployAgentGeneration of the Cluster. The agent then leaves the other hub.",
		onHub: []string{"muster hub status", "muster hub promote"},
	},
	{
		kinds: ofClusters, reasons: []string{
			reasons.SecretMissing, reasons.KubeconfigMissing, reasons.SecretNamespaceNotAllowed, reasons.ConsentMissing,
		},
		means: "The hub has no usable kubeconfig for this Cluster.",
		remedy: "Store the kubeconfig in the Secret that spec.kubeConfigSecret names, under the key \"value\". Create the Secret " +
			"in the workspace of the Cluster. KUBECONFIG is the path of your file.",
		onHub: []string{"kubectl -n NAMESPACE get cluster.fleet.cattle.io NAME -o jsonpath='{.spec.kubeConfigSecret}'",
			"kubectl -n NAMESPACE create secret generic SECRET --from-file=value=KUBECONFIG"},
	},
	{
		kinds: ofClusters, reasons: []string{
			reasons.InvalidKubeconfig, reasons.ContextMissing, reasons.KubeconfigRunsCode, reasons.KubeconfigReadsFiles, reasons.InsecureEndpoint,
			reasons.CredentialMissing,
		},
		means: "The hub cannot use the kubeconfig in the Secret.",
		remedy: "Correct the part that the message names. The file itself must contain one context, an https server, its CA, " +
			"and a token or a client certificate.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.CredentialExpired, reasons.Unauthorized},
		means:  "The cluster rejects the credential of the kubeconfig.",
		remedy: "Put a new credential into the Secret. The hub retries at once.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.RightsMissing},
		means: "The user of the kubeconfig lacks rights on the cluster to install the agent.",
		remedy: "Grant the rights in the message, or use the kubeconfig of an administrator. After the installation the " +
			"agent has its own rights.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.Unreachable, reasons.AddressRefused, reasons.NotAnAPIServer, reasons.Refused},
		means: "The hub gets no valid answer from the API server of the cluster.",
		remedy: "Check that the address is correct, and that the hub can reach it. If the hub cannot reach the cluster, " +
			"register the cluster with a token: the agent then connects to the hub.",
		onHub: []string{newToken},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.UnknownAuthority, reasons.InvalidCertificate},
		means: "The kubeconfig does not trust the certificate of the server.",
		remedy: "Correct certificate-authority-data in the kubeconfig. If it is correct, a proxy or an attacker intercepts " +
			"the connection.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.APIServerURLMissing, reasons.InvalidSettings, reasons.PullSecretMissing},
		means:  "The hub lacks settings to install the agent.",
		remedy: "Correct the value of the chart fleet, or the key of the Secret, that the message names.",
		onHub:  hubSettings,
	},
	{
		kinds: ofClusters, reasons: []string{reasons.WaitingForToken, reasons.TokenRefused},
		means:  "The hub waits for the registration token of the agent.",
		remedy: "Check why the token of the Cluster is not ready.",
		onHub:  []string{getTokens},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentImageNotPulled, reasons.AgentWrongArchitecture},
		means:    "The nodes of the cluster cannot run the image of the agent.",
		remedy:   "Correct the image or the pull secret in the values of the chart fleet. Images exist for amd64 and arm64.",
		onMember: []string{agentPods, "kubectl -n cattle-fleet-system describe pods -l app=fleet-agent"},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentUnschedulable, reasons.AgentNotStarted, reasons.AgentRefused},
		means: "The Pod of the agent does not start on the cluster.",
		remedy: "The message names the obstacle: a node, an admission policy, or the kubelet. To set the agent's tolerations, affinity or " +
			"resources, edit the spec of the Cluster.",
		onMember: []string{"kubectl -n cattle-fleet-system describe pods -l app=fleet-agent", "kubectl get nodes"},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentOutOfMemory, reasons.AgentCrashing},
		means:    "The agent crashes repeatedly.",
		remedy:   "If it runs out of memory, raise spec.agentResources of the Cluster. Otherwise read its log.",
		onMember: []string{agentLog, "kubectl -n cattle-fleet-system logs -l app=fleet-agent --previous --tail=50"},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentRemoved},
		means:  "A user has removed the agent from the cluster, or scaled it to zero.",
		remedy: "To reinstall the agent at once, increase spec.redeployAgentGeneration of the Cluster.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentNotJoined},
		means:    "The agent runs on the cluster, but has not reached the hub.",
		remedy:   "Read its log. Common causes are the address of the hub, a proxy, the CA, and a waiting registration request.",
		onMember: []string{agentLog}, onHub: []string{getRequests},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.Queued},
		means:  "The hub installs agents on other clusters first.",
		remedy: "No action needed: this cluster follows.", aside: true,
	},
}

// Meaning and remedy for an agent of either kind without access to the new address of the hub.
const (
	unreachableMeans  = "The agent cannot reach the hub at its new address. It keeps the old address."
	unreachableRemedy = "Check that the member can reach the new address, and that the CA in the hub's settings has signed the certificate " +
		"there."
	fallbackMeans = "The first address of the hub does not answer this member, so its agent uses a further one. The member works as " +
		"before."
	fallbackRemedy = "Repair the first address: the agent returns by itself. If the hub has another first address now, set it as " +
		"apiServerURL of the hub's chart."
)

// hubSettings is the command for the current settings of the hub.
var hubSettings = []string{"helm -n cattle-fleet-system get values fleet"}

// agentCauses explains problems of a live agent.
var agentCauses = []cause{
	{
		kinds: ofClusters, reasons: []string{"DidNotComeBack"},
		means: "The new version of the agent is not ready after an update. If a tenth of the agents fail, the hub stops the update of the " +
			"others. If there are several workspaces, the failures must be in at least two.",
		remedy: "Check the new Pod on the cluster, and correct the settings or the image. To continue without this Cluster, " +
			"set its label fleet.cattle.io/non-managed-agent=true.",
		onHub:    []string{"kubectl -n NAMESPACE get bundles -l muster/agent-version"},
		onMember: []string{agentPods, "kubectl -n cattle-fleet-system describe deployment fleet-agent"},
	},
	{
		kinds: ofMemberClusters, reasons: []string{"DidNotComeBack"},
		means: "The new version of the agent is not ready after an update. The earlier agent continues. If a tenth of the agents " +
			"fail, the hub stops the update of the others.",
		remedy: "Check the new Pod on the cluster, and correct the hub's settings, the values of the agent's release, or the image. " +
			"To continue without this MemberCluster, set its label fleet.cattle.io/non-managed-agent=true.",
		onHub:    []string{"kubectl -n fleet-member-NAME describe bundledeployment member-agent"},
		onMember: []string{memberPods, "helm history member-agent"},
	},
	{
		kinds: ofMemberClusters, reasons: []string{"RolloutStopped"},
		means: "The hub has stopped this update, because the new version is not ready on at least a tenth of the agents. This agent keeps its " +
			"version.",
		remedy: "Run muster explain for the MemberClusters in the message.",
	},
	{
		kinds: ofClusters, reasons: []string{"RolloutStopped"},
		means: "The hub has stopped this update, because the new version is not ready on at least a tenth of the agents. This agent keeps its " +
			"version.",
		remedy: "Run muster explain for the Clusters in the message.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.NameTaken},
		means:  "Another user's Bundle has the name of the agent's Bundle.",
		remedy: "Delete the Bundle in the message.",
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.NameTaken},
		means:  "The member namespace has a BundleDeployment that the hub did not create. Until it is gone, the hub does not upgrade the agent.",
		remedy: "Delete the BundleDeployment in the message.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AddressUnreachable, reasons.NotVerified},
		means: unreachableMeans, remedy: unreachableRemedy, onHub: hubSettings, onMember: []string{agentLog},
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.AddressUnreachable, reasons.NotVerified},
		means: unreachableMeans, remedy: unreachableRemedy, onHub: hubSettings, onMember: []string{memberLog},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.FallbackInUse},
		means: fallbackMeans, remedy: fallbackRemedy, onHub: hubSettings, onMember: []string{agentLog},
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.FallbackInUse},
		means: fallbackMeans, remedy: fallbackRemedy, onHub: hubSettings, onMember: []string{memberLog},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.ApprovalRequired},
		means:  "The workspace requires approval of its members, and this Cluster is not approved. Nothing is delivered to it.",
		remedy: "Approve the Cluster, if you have the right and expect it.",
		onHub:  []string{"muster approve clusters NAMESPACE/NAME"},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.NotInitialized},
		means: "The Cluster is new, and its init gates hold back all deliveries until it is set up. The message names the next " +
			"gate.",
		remedy: "Make the Bundle of that gate ready, or its condition True. To deliver without it, remove the gate from " +
			"spec.initGates.",
		onHub: []string{"kubectl -n NAMESPACE edit clusters.fleet.cattle.io NAME"},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.AgentTooOld},
		means:  "The agent is too old to move to another address of the hub, or to deploy. The message says what it cannot do.",
		remedy: "Upgrade the agent with Helm. Before the hub moves, upgrade the agent.",
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.AnotherKey},
		means: "The agent requests a credential with another key than the member's. Meanwhile it uses the token of its identity.",
		remedy: "If the agent belongs to the member, for example after its namespace was deleted, accept its key as the " +
			"message says. Otherwise the token has leaked: revoke the member with muster revoke NAME.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.LabelsDropped},
		means:  "The agent requested labels that it may not set.",
		remedy: "Set the labels on the Cluster yourself, or in spec.labels of the registration token.", aside: true,
	},
	{
		kinds: ofMembers, reasons: []string{"Updating", "WaitingForTurn", reasons.Moving, reasons.Exchanging},
		means:  "The agent is updating, moving or receiving a credential, or waits for its turn.",
		remedy: "No action needed.", aside: true,
	},
	{
		kinds: ofMembers, reasons: []string{"Offline"},
		means:  "The agent is offline. It gets the new version as soon as it is back.",
		remedy: "Bring the agent back. No other action is needed.", aside: true,
	},
	{
		kinds: ofClusters, reasons: []string{"NotManaged", reasons.SwitchedOff, "ForeignAgent", "SharedCredential", "CannotBeManaged"},
		means:  "The hub does not manage the version of this agent.",
		remedy: "If this is not intended, follow the message.", aside: true,
	},
	{
		kinds: ofMemberClusters, reasons: []string{"NotManaged", "ForeignAgent", "CannotBeManaged", "UpgradesRefused", "NoCredential"},
		means:  "The hub does not upgrade this agent.",
		remedy: "If this is not intended, follow the message.", aside: true,
		onMember: []string{"helm upgrade --reset-then-reuse-values --wait member-agent fleet/member-agent"},
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.AgentHasNoKey, reasons.SwitchedOff},
		means: "The hub renews no credential for this agent, or does not upgrade it. The message has the cause: the agent has no key, or " +
			"manageAgent of the chart fleet is false.",
		remedy: "For renewed credentials, use Muster's agent. If manageAgent is false, upgrade agents with Helm.", aside: true,
	},
	{
		kinds: ofMembers, reasons: []string{clusterv1beta1.ReasonNamespacesDegraded, reasons.PropertiesSkipped},
		means:  "The report of the agent has no room for all namespaces or properties of the member.",
		remedy: "The message names the missing data. Selectors for missing data do not match this member.", aside: true,
	},
	{
		kinds: ofMembers, reasons: []string{reasons.ClusterProfileTaken},
		means:  "Another user's ClusterProfile has the name of this member's ClusterProfile.",
		remedy: "Delete that ClusterProfile. The hub then creates its own.", aside: true,
	},
	{
		kinds: ofMembers, reasons: []string{reasons.AccessWithheld, reasons.AccessSecretTaken},
		means:  "The hub does not give the kubeconfig of this member to another tool, although its owner consents.",
		remedy: "Follow the message. The page how-to/other-tools.md lists the conditions.", aside: true,
	},
	{
		kinds: ofMembers, reasons: []string{reasons.AccessGiven, reasons.AccessEnded},
		means:  "The hub has given the kubeconfig of this member to another tool, or has taken it back.",
		remedy: "If this is not intended, change the annotation muster/access-for of the kubeconfig Secret.", aside: true,
	},
}
