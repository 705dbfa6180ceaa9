package explain

import (
	"slices"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// What is so with an agent that is lost, of either kind, and what to do.
const (
	lostMeans  = "The agent has sent no heartbeat for three periods: it does not run, or its cluster is down, or it does not reach the hub."
	lostRemedy = "Look on the cluster whether the agent runs, and what it says. What is delivered goes on there; nothing is removed."
)

// recordCauses explains why a member is missing or has no access.
var recordCauses = []cause{
	{
		kinds:   slices.Concat([]string{kindCluster, kindMemberCluster, kindToken, kindRequest, kindBundle}, ofPlacements, ofRuns),
		reasons: []string{reasonNew},
		means:   "No hub has looked at the object yet.",
		remedy:  "If that lasts longer than a moment, no hub runs or none leads: see its Pods and what it logs.",
		onHub:   []string{"kubectl -n cattle-fleet-system get pods -l app=fleet-controller", hubLog},
	},
	{
		kinds: append([]string{kindCluster, kindMemberCluster, kindBundle}, ofPlacements...), reasons: []string{reasons.DefinitionDeleted},
		means:  "The CustomResourceDefinition of this kind is being deleted. Nothing is removed from any member, and nothing new is done.",
		remedy: "Save the objects of the kind, take their finalizers off, install the chart fleet-crd again and create them anew.",
		onHub:  []string{"helm -n cattle-fleet-system upgrade --install fleet-crd fleet/fleet-crd --reset-then-reuse-values"},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.Revoked},
		means:  "Somebody has revoked the member: no agent of it has access, and nothing is delivered. What is on the member stays there.",
		remedy: "To let it in again take the annotation off, as the message says, and give the member a new registration token.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.Revoking},
		means:  "The member is revoked, and something that gives its agent access is left on the hub.",
		remedy: "Delete what the message names: the hub deletes what it made itself. The hub looks again within half a minute.",
	},
	{
		kinds: []string{kindCluster}, reasons: []string{reasons.ManagedElsewhere},
		means:  "A label says that another manager has this Cluster. This hub delivers nothing to it and does not watch its agent.",
		remedy: "To have this hub manage the Cluster again, take the label off. To end the access of its agent, revoke the Cluster.",
		onHub:  []string{"kubectl -n NAMESPACE label cluster.fleet.cattle.io NAME fleet.cattle.io/cluster-management-"},
	},
	{
		kinds: append([]string{kindRequest}, ofMembers...), reasons: []string{reasons.NamespaceTaken},
		means:  "The namespace that the hub would make for this member exists and belongs to somebody else.",
		remedy: "Delete that namespace if nobody needs it, or register the cluster under another name.",
	},
	{
		kinds: append([]string{kindRequest}, ofMembers...), reasons: []string{reasons.NamespaceTerminating},
		means:  "The namespace of the member is being deleted. The hub makes it anew when it is gone.",
		remedy: "If it does not go, an object in it has a finalizer that nobody removes: the conditions of the namespace name it.",
		onHub:  []string{"kubectl get namespaces --field-selector status.phase=Terminating"},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.Leaving},
		means: "The record is deleted, and the member is leaving: its agent removes what was delivered, if the record asks for that.",
		remedy: "The message says what is left. If the agent cannot do it any more, as its cluster is gone, the hub goes on without it after a " +
			"while.",
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.IdentityInvalid},
		means:  "spec.identity names nobody who may be the agent of a member.",
		remedy: "Name a ServiceAccount of the namespace fleet-system, or a user, that nothing else acts as.",
		onHub:  []string{"kubectl edit membercluster NAME"},
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.IdentityInUse},
		means:  "Another member has this identity already, and two agents must not act as one.",
		remedy: "Give this member a ServiceAccount of its own, and name that in spec.identity.",
		onHub:  []string{"kubectl create serviceaccount NAME-agent -n fleet-system", "kubectl edit membercluster NAME"},
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.IdentityMissing},
		means:  "The ServiceAccount that spec.identity names does not exist.",
		remedy: "Create it, as the message says, and give its token to the chart member-agent.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.IdentityMissing},
		means:  "Somebody has deleted the account of the agent, and its credential with it.",
		remedy: "Register the cluster again: give its agent the values of a new registration token.",
		onHub:  []string{newToken},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.WaitCheckIn},
		means: "No agent has registered as this Cluster yet.",
		remedy: "Install the chart fleet-agent on the cluster with the values of a registration token. If that was done, its request is among " +
			"those of the workspace, or the agent says why it cannot ask.",
		onHub: []string{"kubectl -n NAMESPACE get clusterregistrations"}, onMember: []string{agentPods, agentLog},
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.MemberClusterJoinStateUnknown, reasons.AgentUnseen},
		means: "The agent of the member has not come yet.",
		remedy: "Install the chart member-agent on the cluster, with the name of this MemberCluster and the token of its identity. If that " +
			"was done, the agent says why it cannot join.",
		onMember: []string{"helm status member-agent", memberPods, memberLog},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.AgentLeft, reasons.MemberClusterLeft},
		means:  "The agent has left: its cluster was registered elsewhere, or it did as it was asked.",
		remedy: "Delete the record if the cluster is not to be back; else give it a registration token of this workspace.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentLost},
		means: lostMeans, remedy: lostRemedy, onMember: []string{agentPods, agentLog},
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.AgentLost},
		means: lostMeans, remedy: lostRemedy, onMember: []string{memberPods, memberLog},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.AgentUnhealthy, reasons.InternalMemberClusterUnhealthy},
		means:    "The agent is alive, and the API server of its cluster is not well.",
		remedy:   "See to the control plane of that cluster; the message is what it answers.",
		onMember: []string{"kubectl get --raw '/readyz?verbose'"},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.CredentialSuperseded},
		means: "An older credential of the agent was used after a newer one: two agents have the credential of this member, such as a clone of " +
			"the cluster or one that was restored from a backup.",
		remedy: "Find out which is the member and register the other anew. Then accept, as the message says, the one that goes on; no " +
			"credential is renewed before.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentWaiting},
		means:  "A second agent with the credential of this Cluster waits for the first to fall silent.",
		remedy: "Stop one of the two, or register it as a Cluster of its own, with a client ID of its own.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.RemovalBlocked},
		means: "Something whose Bundle or placement is gone cannot be removed from the member.",
		remedy: "The message names the object and what keeps it: give the account the right, take off the finalizer, or delete the object by " +
			"hand.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.RemovalUnconfirmed},
		means: "A release is kept, because it is not known whether the hub has taken its BundleDeployment away.",
		remedy: "The message says what is missing. Nothing is removed before. If the hub has no record of the deletion, create the Bundle " +
			"again; to remove the release, delete the Bundle after that.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.HubRestored},
		means:  "The hub was restored from a backup that does not know a release of this member, which stays.",
		remedy: "Create its Bundle again; to remove the release, delete the Bundle after that.",
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.KubeFleetFinalizers},
		means:  "The hub of KubeFleet has left finalizers on the record, which keep it when it is deleted.",
		remedy: "If that hub is gone for good take them off, as the message says.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.LeavePolicyInvalid},
		means:  "The record asks for something that the hub cannot do.",
		remedy: "Correct the field that the message names.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.ReportTooLarge},
		means:  "The report of the agent is larger than the hub keeps. The health in it counts, and the rest is left out.",
		remedy: "Let the agent report less: namespaces and properties are what grows.",
	},
}
