package explain

import (
	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// importCauses explains failures of the hub to install an agent through a kubeconfig. The condition
// Imported of a Cluster shows the reasons, and so does Ready until an agent has joined.
var importCauses = []cause{
	{
		kinds: ofClusters, reasons: []string{reasons.IsHub, reasons.AlreadyRegistered, reasons.AgentEnding},
		means:  "The kubeconfig leads to a cluster that is something else in the fleet already.",
		remedy: "Give the Cluster the kubeconfig of the cluster that is meant, or delete the other record.",
	},
	{
		kinds: ofClusters, reasons: []string{
			reasons.SecretMissing, reasons.KubeconfigMissing, reasons.SecretNamespaceNotAllowed, reasons.ConsentMissing,
		},
		means:  "There is no kubeconfig that the hub may use for this Cluster.",
		remedy: "Put one under the key value into the Secret that spec.kubeConfigSecret names, in the workspace of the Cluster.",
		onHub: []string{"kubectl -n NAMESPACE get cluster.fleet.cattle.io NAME -o jsonpath='{.spec.kubeConfigSecret}'",
			"kubectl -n NAMESPACE create secret generic SECRET --from-file=value=KUBECONFIG"},
	},
	{
		kinds: ofClusters, reasons: []string{
			reasons.InvalidKubeconfig, reasons.ContextMissing, reasons.KubeconfigRunsCode, reasons.KubeconfigReadsFiles, reasons.InsecureEndpoint,
			reasons.CredentialMissing,
		},
		means: "The kubeconfig in the Secret cannot be used by the hub.",
		remedy: "Correct what the message names. All that it needs has to be in it: one context, an https server, its CA, and a token or a " +
			"client certificate.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.CredentialExpired, reasons.Unauthorized},
		means:  "The cluster does not accept the credential of the kubeconfig.",
		remedy: "Give the Secret a new one. The hub tries again at once.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.RightsMissing},
		means:  "The user of the kubeconfig may not do on the cluster what installing an agent takes.",
		remedy: "Give the user these rights there, or use the kubeconfig of an admin: the agent has rights of its own afterwards.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.Unreachable, reasons.AddressRefused, reasons.NotAnAPIServer, reasons.Refused},
		means: "The hub does not get an answer from the API server of the cluster.",
		remedy: "See that its address can be reached from the hub, and is that of an API server. If it cannot be, install the agent on the " +
			"cluster with a registration token: then it is the agent that connects.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.UnknownAuthority, reasons.InvalidCertificate},
		means:  "The certificate that the server shows is not one that the kubeconfig trusts.",
		remedy: "Correct certificate-authority-data in the kubeconfig. If it is right, somebody stands between the hub and the cluster.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.APIServerURLMissing, reasons.InvalidSettings, reasons.PullSecretMissing},
		means:  "The hub does not know with which settings to install the agent.",
		remedy: "Correct the value of the chart fleet, or the key of the Secret, that the message names.",
		onHub:  hubSettings,
	},
	{
		kinds: ofClusters, reasons: []string{reasons.WaitingForToken, reasons.TokenRefused},
		means:  "The hub waits for the token by which the agent is to register.",
		remedy: "See why the token of the Cluster is not ready.",
		onHub:  []string{newToken},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentImageNotPulled, reasons.AgentWrongArchitecture},
		means:    "The nodes of the cluster cannot run the image of the agent.",
		remedy:   "Correct the image or the pull secret in the values of the chart fleet; images are built for amd64 and arm64.",
		onMember: []string{agentPods, "kubectl -n cattle-fleet-system describe pods -l app=fleet-agent"},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentUnschedulable, reasons.AgentNotStarted, reasons.AgentRefused},
		means: "The Pod of the agent does not start on the cluster.",
		remedy: "The message says whether a node, an admission policy or a kubelet keeps it; tolerations, affinity and resources of the agent " +
			"are fields of the Cluster.",
		onMember: []string{"kubectl -n cattle-fleet-system describe pods -l app=fleet-agent", "kubectl get nodes"},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentOutOfMemory, reasons.AgentCrashing},
		means:    "The agent ends again and again.",
		remedy:   "If it is for memory, give it more with spec.agentResources of the Cluster; else its log says why.",
		onMember: []string{agentLog, "kubectl -n cattle-fleet-system logs -l app=fleet-agent --previous --tail=50"},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentRemoved},
		means:  "Somebody has removed the agent from the cluster, or scaled it to nothing.",
		remedy: "To have the hub install it at once, raise spec.redeployAgentGeneration of the Cluster.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentNotJoined},
		means:    "The agent runs on the cluster and has not come through to the hub.",
		remedy:   "Its log says why: the address of the hub, a proxy, its CA, or the request to register.",
		onMember: []string{agentLog}, onHub: []string{"kubectl -n NAMESPACE get clusterregistrations"},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.Queued},
		means:  "Other clusters are installed first.",
		remedy: "Nothing: its turn comes.", aside: true,
	},
}

// Meaning and remedy for an agent, of either kind, that does not reach another address.
const (
	unreachableMeans  = "The agent was asked to use another address of the hub and does not get through there. It goes on with the one before."
	unreachableRemedy = "See that the new address can be reached from the member and shows a certificate of the CA in the hub's settings."
)

// hubSettings is the command that shows the settings of the hub.
var hubSettings = []string{"helm -n cattle-fleet-system get values fleet"}

// agentCauses explains problems of an agent that sends heartbeats.
var agentCauses = []cause{
	{
		kinds: ofClusters, reasons: []string{"DidNotComeBack"},
		means: "The agent was told to replace itself by another version, and the new one is not ready. If that is so of a tenth of the agents, " +
			"in several workspaces, others do not get it.",
		remedy: "Look at the new Pod on the cluster; correct the settings or the image. To go on without this Cluster give it the label " +
			"fleet.cattle.io/non-managed-agent=true.",
		onHub:    []string{"kubectl -n NAMESPACE get bundles -l muster/agent-version"},
		onMember: []string{agentPods, "kubectl -n cattle-fleet-system describe deployment fleet-agent"},
	},
	{
		kinds: ofClusters, reasons: []string{"RolloutStopped"},
		means: "The agent keeps its version, because those of other Clusters, at least a tenth and of several workspaces if there are several, " +
			"did not come back with the new one.",
		remedy: "Explain the Clusters that the message names.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.NameTaken},
		means:  "A Bundle that somebody else made has the name of the agent's.",
		remedy: "Delete the Bundle that the message names.",
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
		kinds: ofClusters, reasons: []string{reasons.ApprovalRequired},
		means:  "The workspace approves its members, and nobody has approved this one: nothing is delivered to it.",
		remedy: "Approve it, if you may, as the message says.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.AgentTooOld},
		means: "The agent is of a version that cannot move to another address of the hub, or that does not know the name of its namespace on " +
			"the hub and deploys nothing; the message says which.",
		remedy: "Upgrade it with helm, before the old address goes.",
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.AnotherKey},
		means: "An agent with another key than the member's asks for a credential. It goes on with the token of the identity.",
		remedy: "If it is the member, as after its namespace was deleted, accept its key as the message says; else somebody else has the token " +
			"of the identity: revoke it.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.LabelsDropped},
		means:  "The agent asked for labels that it may not set.",
		remedy: "Set them on the Cluster yourself, or have the token stamp them.", aside: true,
	},
	{
		kinds: ofMembers, reasons: []string{"Updating", "WaitingForTurn", reasons.Moving, reasons.Exchanging},
		means:  "The agent is being updated, moved or given a credential, or waits for its turn.",
		remedy: "Nothing: it goes on by itself.", aside: true,
	},
	{
		kinds: ofClusters, reasons: []string{"Offline"},
		means:  "The agent is to get another version when it is back.",
		remedy: "Nothing beside what brings it back.", aside: true,
	},
	{
		kinds: ofClusters, reasons: []string{"NotManaged", reasons.SwitchedOff, "ForeignAgent", "SharedCredential", "CannotBeManaged", "Paused"},
		means:  "The hub leaves the version of this agent to you.",
		remedy: "If you want that, nothing; else the message says how to change it.", aside: true,
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.AgentHasNoKey, reasons.SwitchedOff},
		means:  "The agent goes on with the token of its identity, which the hub cannot renew.",
		remedy: "Muster's own agent has a key, for which the hub issues a credential that ends and is renewed.", aside: true,
	},
	{
		kinds: ofMembers, reasons: []string{clusterv1beta1.ReasonNamespacesDegraded, reasons.PropertiesSkipped},
		means:  "The report of the agent does not have room for all namespaces or properties of the member.",
		remedy: "The message says what was left out. Selections by what is missing do not see this member.", aside: true,
	},
	{
		kinds: ofMembers, reasons: []string{reasons.ClusterProfileTaken},
		means:  "A ClusterProfile that somebody else made has the name of this member's.",
		remedy: "Delete it, and the hub makes its own.", aside: true,
	},
}
