package explain

import (
	"slices"

	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// Meaning and remedy for a lost agent of either kind.
const (
	lostMeans  = "The agent has missed three heartbeats: it is not running, its cluster is down, or it cannot reach the hub."
	lostRemedy = "Check that the agent is running on the member, and read its log. Workloads already delivered keep running; " +
		"nothing is removed."
)

// memberCauses explains why a member is missing or has no access.
var memberCauses = []cause{
	{
		kinds:   slices.Concat(ofMembers, ofTokens, ofRequests, ofBundles, ofSources, ofPlacements, ofRuns),
		reasons: []string{reasonNew},
		means:   "No hub has reconciled the object yet.",
		remedy:  "If this lasts longer than a minute, the hub is not running, or no replica leads. Check the Pods and their log.",
		onHub:   []string{"kubectl -n cattle-fleet-system get pods -l app=fleet-controller", hubLog},
	},
	{
		kinds: append([]string{kindCluster, kindMemberCluster, kindBundle}, ofPlacements...), reasons: []string{reasons.DefinitionDeleted},
		means: "The CustomResourceDefinition of this kind is being deleted. Muster removes nothing from members, and " +
			"delivers nothing new.",
		remedy: "Save the objects of the kind, remove their finalizers, install the chart fleet-crd again, and recreate the " +
			"objects.",
		onHub: []string{"helm -n cattle-fleet-system upgrade --install fleet-crd fleet/fleet-crd --reset-then-reuse-values"},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.Revoked},
		means: "The member is revoked: its agent has no access, and nothing is delivered. Workloads already delivered stay " +
			"on the member.",
		remedy: "Restore access, then register the cluster again with a new token: muster join.",
		onHub:  []string{"muster revoke OBJECT --undo"},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.Revoking},
		means: "The member is revoked, but an object on the hub still grants access to its agent.",
		remedy: "Delete the object in the message yourself, because the hub deletes only its own objects. The hub checks again within 30 " +
			"seconds.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.Quarantined},
		means: "A user has quarantined the member: its agent may only send heartbeats and reports. Its deliveries stay unchanged, and it gets " +
			"no new ones.",
		remedy: "The message names the user and the reason. To continue the deliveries, end the quarantine.",
		onHub:  []string{"muster quarantine OBJECT --undo"},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.Quarantining},
		means: "The member is quarantined, but an object on the hub still grants other rights to its agent.",
		remedy: "Delete the object in the message yourself, because the hub deletes only its own objects. The hub checks again within 30 " +
			"seconds.",
	},
	{
		kinds: ofBundles, reasons: []string{reasons.Quarantined},
		means:  "The Bundle is being deleted. A quarantined Cluster keeps the workload of the Bundle until the quarantine ends.",
		remedy: "No action needed. To remove the workload now, end the quarantine as the message says, or delete the Cluster.",
	},
	{
		kinds: []string{kindCluster}, reasons: []string{reasons.ManagedElsewhere},
		means: "A label assigns this Cluster to another manager. This hub delivers nothing to it, and does not monitor its " +
			"agent.",
		remedy: "To manage the Cluster with this hub again, remove the label. To end the access of its agent, revoke the " +
			"Cluster.",
		onHub: []string{"kubectl -n NAMESPACE label cluster.fleet.cattle.io NAME fleet.cattle.io/cluster-management-",
			"muster revoke clusters NAMESPACE/NAME"},
	},
	{
		kinds: append([]string{kindRequest}, ofMembers...), reasons: []string{reasons.NamespaceTaken},
		means:  "The namespace that the hub needs for this member exists, and belongs to another owner.",
		remedy: "Delete that namespace if it is unused, or register the cluster under another name.",
	},
	{
		kinds: append([]string{kindRequest}, ofMembers...), reasons: []string{reasons.NamespaceTerminating},
		means: "The namespace of the member is being deleted. The hub recreates it afterwards.",
		remedy: "If the deletion does not end, an object in the namespace has a finalizer. The conditions of the namespace " +
			"name it.",
		onHub: []string{"kubectl get namespaces --field-selector status.phase=Terminating"},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.Leaving},
		means:  "The member is leaving the fleet. Its agent removes the deliveries if the leave policy is Delete.",
		remedy: "The message names the remaining objects. If the cluster is gone, the hub finishes without the agent after a while.",
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.IdentityInvalid},
		means:  "The agent of a member cannot use the account in spec.identity.",
		remedy: "Name a ServiceAccount in the namespace fleet-system, or a user. The account must serve no other purpose.",
		onHub:  []string{"kubectl edit membercluster NAME"},
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.IdentityInUse},
		means:  "Another member uses the same identity. Each agent needs its own identity.",
		remedy: "Create a ServiceAccount for this member, and name it in spec.identity.",
		onHub:  []string{"kubectl create serviceaccount NAME-agent -n fleet-system", "kubectl edit membercluster NAME"},
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.IdentityMissing},
		means:  "The ServiceAccount in spec.identity does not exist.",
		remedy: "Create it as the message says, and give its token to the chart member-agent.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.IdentityMissing},
		means:  "A user has deleted the account of the agent, and with it the agent's credential.",
		remedy: "Create a token, and register the cluster again.",
		onHub:  []string{newToken},
	},
	{
		kinds: ofClusters, reasons: []string{reasons.WaitCheckIn},
		means: "No agent has registered as this Cluster yet.",
		remedy: "Register the cluster with muster join, or install the chart fleet-agent with the values of a registration " +
			"token. If the agent is installed, check for a waiting request, and read the agent's log.",
		onHub: []string{getRequests}, onMember: []string{agentPods, agentLog},
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.MemberClusterJoinStateUnknown, reasons.AgentUnseen},
		means: "The agent of the member has not connected yet.",
		remedy: "Run muster join --member, or install the chart member-agent with the name of this MemberCluster and the " +
			"token of its identity. If the agent is installed, read its log.",
		onMember: []string{"helm status member-agent", memberPods, memberLog},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.AgentLeft, reasons.MemberClusterLeft},
		means: "The agent has left: its cluster is registered elsewhere, or the hub requested it.",
		remedy: "To remove the member, run muster leave OBJECT. To bring it back, register the cluster again with a token of " +
			"this workspace.",
	},
	{
		kinds: []string{kindCluster, kindRequest}, reasons: []string{reasons.InvalidName},
		means:  "The name of the Cluster has dots. The hub needs a namespace with this name, and the name of a namespace cannot have dots.",
		remedy: "Create the Cluster under the name that the message proposes, with the same spec, and delete this one.",
		onHub:  []string{"kubectl -n NAMESPACE get clusters.fleet.cattle.io"},
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
		means:    "The agent sends heartbeats, but the API server of its cluster is unhealthy.",
		remedy:   "Repair the control plane of the cluster. The message quotes its answer.",
		onMember: []string{"kubectl get --raw '/readyz?verbose'"},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.CredentialSuperseded},
		means: "The agent used an old credential after a newer one. Two agents share the credential of this member, for example after the " +
			"cluster was cloned or restored from a backup.",
		remedy: "Find out which cluster is the member, and register the other one again. Then accept the remaining agent as " +
			"the message says. Until then the hub renews no credential.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.LeavesFirst},
		means: "The cluster of Cluster API is being deleted. The hub has paused it, so its machines go after the member has left the fleet.",
		remedy: "None is needed: the hub waits at most until the time in the message. To delete the machines at once, run the command in " +
			"the message.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.LeaveRefused},
		means:  "The cluster of Cluster API is being deleted, and the API server does not let the hub remove the member first.",
		remedy: "The message quotes the refusal, for example a protection. Remove its cause, or run the command in the message.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.LeftLate},
		means:  "The member did not leave the fleet before Cluster API deletes its machines, so deliveries can still be on the cluster.",
		remedy: "Check why the member did not leave. Next time, raise clusterAPI.leaveFirst of the hub's chart.",
	},
	{
		kinds: ofClusters, reasons: []string{reasons.AgentWaiting},
		means:  "Two agents have the credential of this Cluster. The second one waits until the first one stops.",
		remedy: "Stop one of the two agents, or register its cluster as a separate Cluster with its own client ID.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.RemovalBlocked},
		means: "A Bundle or placement was removed, but the agent cannot remove its objects from the member.",
		remedy: "The message names the remaining object and the cause. Grant the missing right, remove the finalizer, or delete the object " +
			"yourself.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.RemovalUnconfirmed},
		means: "The agent keeps a Helm release, because the hub has not confirmed the deletion of its BundleDeployment.",
		remedy: "The message names the missing proof. Until then the agent removes nothing. If the hub never deleted the BundleDeployment, " +
			"create the Bundle again. To remove the release, delete the Bundle after that.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.HubRestored},
		means: "The hub was restored from a backup, and this member has deliveries that the backup does not contain. They stay. The message " +
			"names the first ones.",
		remedy: "Create the Bundle or placement again: the agent takes the delivery over, and installs nothing anew. To remove a delivery, " +
			"delete the Bundle or placement after that, or run the command in the message on the member.",
		onMember: []string{"kubectl get secrets -A -l owner=helm -L muster/member", "kubectl get appliedworks -L muster/member"},
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.KubeFleetFinalizers},
		means:  "KubeFleet's hub left finalizers on the MemberCluster. They block its deletion.",
		remedy: "If that hub is gone for good, remove the finalizers as the message says.",
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.ServicesExported},
		means: "The MemberCluster is deleted and exports services through KubeFleet's networking agents. Its validation mode is Strict, so " +
			"the hub keeps it until the exports are gone.",
		remedy: "Delete the ServiceExports on the cluster, or set spec.deleteOptions.validationMode to Skip as the message says.",
	},
	{
		kinds: ofMemberClusters, reasons: []string{reasons.ServicesUnreadable},
		means: "The MemberCluster is deleted, and the hub cannot check for exported services. The hub keeps it, because its validation mode " +
			"is Strict.",
		remedy: "Upgrade the chart of the hub, which gives it the right to list them, or set the validation mode to Skip as the message says.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.LeavePolicyInvalid},
		means:  "A setting of the member has a value that the hub does not support.",
		remedy: "Correct the field in the message.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.ReportTooLarge},
		means: "The report of the agent is too large. The hub uses only its health.",
		remedy: "Muster's agent keeps its report far below the limit. If the member has KubeFleet's agent, disable its property provider. " +
			"Otherwise another program writes the report: revoke the member with muster revoke OBJECT.",
	},
	{
		kinds: ofMembers, reasons: []string{reasons.Draining}, aside: true,
		means:  "A user drains the member: its ClusterResourcePlacements move to other members. It gets no new deliveries.",
		remedy: "No action needed. To stop the drain, uncordon the member.",
		onHub:  []string{"muster uncordon OBJECT"},
	},
	{
		kinds: ofMembers, reasons: []string{reasons.DrainStopped}, aside: true,
		means: "The process of a drain ended before all placements had left. The member stays cordoned, and placements that have left do not " +
			"come back.",
		remedy: "Drain the member again to go on, or uncordon it to end the drain.",
		onHub:  []string{"muster drain OBJECT", "muster uncordon OBJECT"},
	},
}
