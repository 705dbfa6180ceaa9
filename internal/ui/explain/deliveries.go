package explain

import "github.com/muster-fleet/muster/internal/fleet/reasons"

// deliveryCauses explains problems of the deployment of a Bundle.
var deliveryCauses = []cause{
	{
		kinds: []string{kindBundleDeployment, kindWork}, reasons: []string{reasonNew},
		means:  "The agent of the member has not processed the object yet.",
		remedy: "If this lasts longer than a minute, check the member: its agent is not running, or cannot reach the hub.",
		onHub:  []string{"muster get"},
	},
	{
		kinds: ofBundles, reasons: []string{reasons.Invalid, reasons.Error, reasons.InvalidMapping, reasons.UnsupportedFields},
		means:  "The Bundle has an invalid or unsupported field. Deployed resources stay unchanged.",
		remedy: "Correct the field in the message.",
		onHub:  []string{"kubectl -n NAMESPACE edit bundle NAME"},
	},
	{
		kinds: ofBundles, reasons: []string{reasons.PolicyViolation},
		means:  "The Bundle has a value that the Policies of its namespace do not allow. Deployed resources stay unchanged.",
		remedy: "Change the value in the message, or let an administrator change a Policy.",
		onHub:  []string{"kubectl -n NAMESPACE get policies.fleet.cattle.io -o yaml", "kubectl -n NAMESPACE edit bundle NAME"},
	},
	{
		kinds: ofBundles, reasons: []string{reasons.InvalidForSomeClusters},
		means: "The options or values of the Bundle are invalid for some Clusters. Often a template uses a label that they " +
			"lack.",
		remedy: "Correct the template, or the Clusters in the message.",
	},
	{
		kinds: ofBundles, reasons: []string{reasons.RemovalHeld},
		means: "A change outside the Bundle would remove it from many Clusters at once, for example a change of labels or of a ClusterGroup. " +
			"Deployed resources stay unchanged.",
		remedy: "Undo the change. If the removal is intended, confirm it.",
		onHub: []string{"kubectl -n NAMESPACE get clustergroups,clusters.fleet.cattle.io --show-labels",
			"muster confirm bundles NAMESPACE/NAME"},
	},
	{
		kinds: ofBundles, reasons: []string{reasons.TakeoverHeld},
		means: "Another hub deployed the Bundle. With the rules of this hub, some Clusters would lose it, or get another version. Deployed " +
			"resources stay unchanged.",
		remedy: "Check the Clusters in the message. If the change is intended, confirm it. Otherwise change the Bundle.",
		onHub:  []string{"kubectl -n NAMESPACE get bundles.fleet.cattle.io NAME -o yaml", "muster confirm bundles NAMESPACE/NAME"},
	},
	{
		kinds: ofBundles, reasons: []string{reasons.ConsentMissing},
		means:  "A BundleNamespaceMapping selects a namespace that does not consent.",
		remedy: "The owner of the namespace can consent with the annotation in the message.",
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.DeployerCrashed},
		means:  "The agent cannot render this Bundle: a template takes too much memory, or never ends.",
		remedy: "Correct the chart. Other Bundles are not affected. The agent retries this one at growing intervals.",
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.ReleaseConflict, reasons.ObjectConflict},
		means: "A release or an object of that name on the member belongs to another owner. Muster leaves it alone.",
		remedy: "Use another release name or namespace in the Bundle, or remove the other object. To take it over, set " +
			"helm.takeOwnership.",
		onMember: []string{"helm list -A"},
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.CRDConflict},
		means: "The chart would replace a CustomResourceDefinition of another owner, or make stored objects unreadable. " +
			"Muster deploys nothing.",
		remedy:   "Follow the message. To keep the existing definition, set helm.crds to Create.",
		onMember: []string{"kubectl get customresourcedefinitions"},
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.CRDsDiffer},
		means:    "The Bundle is deployed, but definitions on the member differ from crds/ of its chart. Its objects may lack new fields.",
		remedy:   "To upgrade the definitions of the release with the chart, set helm.crds to CreateReplace.",
		onMember: []string{"kubectl get customresourcedefinitions"}, aside: true,
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.NamespaceTerminating},
		means:    "The namespace of the Bundle is being deleted on the member. The agent deploys the Bundle when the namespace is gone.",
		remedy:   "Wait. If the namespace stays for minutes, read its conditions. They name the remaining objects and finalizers.",
		onMember: []string{"kubectl get namespace NAMESPACE -o yaml"},
	},
	{
		kinds: ofDeliveries, reasons: []string{"WaitingForDependency", "Waiting"},
		means: "A Bundle waits for another Bundle in spec.dependsOn, or for an init gate of a new Cluster. This is no error.",
		remedy: "If it lasts, run muster explain for the Bundle or Cluster in the message. The Bundle has not reached an accepted state there, " +
			"or the gate is closed.",
		onHub: []string{"kubectl get bundledeployments -A"}, passing: true,
	},
	{
		kinds: ofDeliveries, reasons: []string{"OutsideWindow"},
		means:  "The Cluster has a Schedule, and no window is open now. The agent changes and corrects nothing. This is no error.",
		remedy: "Wait for the time in the message. To deploy earlier, change the Schedule.",
		onHub:  []string{"kubectl get schedules -A"}, aside: true,
	},
	{
		kinds: ofDeliveries, reasons: []string{"Paused"},
		means:  "A user has paused a Bundle or a Cluster. A change or a new version of the agent waits. This is no error.",
		remedy: "To deploy it, end the pause of the Bundle or of the Cluster with muster pause NAME --undo.",
		onHub:  []string{"kubectl get bundles.fleet.cattle.io,clusters.fleet.cattle.io -A"}, aside: true,
	},
	{
		kinds: ofBundles, reasons: []string{reasons.DependencyCircle},
		means:  "Bundles depend on each other in a circle, so the hub can deploy none of them first.",
		remedy: "For a circle a → b → a in the message, remove b from spec.dependsOn of a.",
		onHub:  []string{"kubectl -n NAMESPACE edit bundles.fleet.cattle.io NAME"},
	},
	{
		kinds: ofBundles, reasons: []string{reasons.DependencyMissing},
		means:  "The Bundle depends on a Bundle that its workspace does not have.",
		remedy: "Create that Bundle, or correct the name in spec.dependsOn.",
		onHub:  []string{"kubectl -n NAMESPACE get bundles.fleet.cattle.io"},
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.ContentUnreadable, reasons.ContentRefused},
		means: "The agent cannot read the content of the Bundle from the hub, or the content is damaged.",
		remedy: "If access is refused, no action is needed: the hub restores the agent's right. If the content is damaged, change the Bundle: " +
			"the hub then writes the content again.",
		onHub: []string{hubLog},
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.DownstreamResourceUnreadable},
		means: "The agent cannot read a Secret or ConfigMap in downstreamResources from its member namespace on the hub.",
		remedy: "The hub writes a missing copy again. If the message stays, check that the object exists in the namespace of the " +
			"Bundle, and read the condition Processed of the Bundle.",
		onHub: []string{"kubectl -n NAMESPACE get secrets,configmaps -l muster/copied-from", hubLog},
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{
			reasons.ChartVersionRefused, reasons.ChartUnreadable, reasons.ResourcesInvalid, reasons.ValuesInvalid,
		},
		means:  "The chart, the files or the values of the Bundle are invalid.",
		remedy: "Correct the part of the Bundle that the message names.",
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.MoveFailed},
		means:    "The release is deployed under its new name or namespace, but the agent cannot remove the old release.",
		remedy:   "The message names the remaining object, and the cause: a missing right, or a finalizer.",
		onMember: []string{"helm list -A --all"},
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{
			reasons.Error, reasons.DeployFailed, reasons.CorrectionFailed, reasons.FieldNotImplemented,
		},
		means: "Helm cannot install or upgrade the release on the member.",
		remedy: "The message quotes Helm. Common causes are an object that the API server refuses, and a missing right of the account. If the " +
			"release has a new name or namespace, the old release stays until the new one is deployed. If both cannot exist at once, delete the " +
			"Bundle first.",
		onMember: []string{"helm list -A --all", agentLog},
	},
	{
		kinds: []string{kindBundle, kindClusterPlacement, kindPlacement}, reasons: []string{reasons.AgentLost},
		means:  "A member is Lost, and gets nothing new. This state is from its last report, and does not count as ready.",
		remedy: "Run muster explain for the member, and bring its agent back. Its next report updates the state.",
		onHub:  []string{"muster get", "muster explain"},
	},
	{
		kinds: ofDeliveries, reasons: []string{"ErrApplied"},
		means:  "The agent could not deploy a Bundle.",
		remedy: "The message names the Bundle, the Cluster and the cause.",
		onHub:  []string{"kubectl get bundledeployments -A"},
	},
	{
		kinds: ofDeliveries, reasons: []string{"NotReady"},
		means:    "A Bundle is deployed, but some of its objects are not ready.",
		remedy:   "The message has the cause if the member reports one. Otherwise check the Pods and Events of the objects there.",
		onMember: []string{"kubectl get pods -A --field-selector status.phase!=Running", "kubectl get events -A --sort-by .lastTimestamp"},
	},
	{
		kinds: ofDeliveries, reasons: []string{"Modified"},
		means:  "A user or a program has changed deployed objects on the member.",
		remedy: "To restore them automatically, set correctDrift.enabled. Otherwise change the Bundle.",
	},
	{
		kinds: ofDeliveries, reasons: []string{"WaitApplied", "Pending"},
		means: "A Bundle is rolling out: some members have not deployed it yet, or wait for others.",
		remedy: "No action needed, unless the number of unready members reaches rolloutStrategy.maxUnavailable. Then check " +
			"these members.",
		onHub: []string{"kubectl get bundledeployments -A"}, passing: true,
	},
	{
		kinds: ofDeliveries, reasons: []string{"OutOfSync"},
		means:  "The hub cannot write the BundleDeployment.",
		remedy: "Read the cause in the message. The hub retries.",
		onHub:  []string{"kubectl get bundledeployments -A"}, passing: true,
	},
	{
		kinds: []string{kindBundleDeployment}, reasons: []string{reasons.Unwatched, reasons.DeployerNotRunning},
		means:    "The agent does not watch the deployed objects, so it notices no changes to them.",
		remedy:   "The delivery process of the member is not running. Read the agent's log.",
		onMember: []string{agentLog},
	},
	{
		kinds: []string{kindBundle}, reasons: []string{reasons.TargetOutranked},
		means:   "A Cluster gets the Bundle although a later target excludes it, because the first matching target decides.",
		remedy:  "Move the target with doNotDeploy before the target in the message, or set targetCustomizationMode to AllMatches.",
		passing: true,
	},
	{
		kinds: []string{kindBundle}, reasons: []string{reasons.TargetUnmatched},
		means: "Some targets of the Bundle match no Cluster.",
		remedy: "Compare the targets in the message with the names and labels of the Clusters in the workspace. No action needed if these " +
			"Clusters register later.",
		onHub:   []string{"kubectl -n NAMESPACE get clusters.fleet.cattle.io --show-labels"},
		passing: true,
	},
	{
		kinds: ofBundles, reasons: []string{reasons.NoTarget},
		means:  "The Bundle matches no Cluster, so it is not deployed.",
		remedy: "Compare its targets with the labels of the Clusters in its workspace.",
		onHub:  []string{"kubectl -n NAMESPACE get clusters.fleet.cattle.io --show-labels"}, aside: true,
	},
}
