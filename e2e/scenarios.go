package main

// scenarios are what is checked, in this order; each finds the fleet as the ones before it have left it.
func scenarios() []scenario {
	return []scenario{
		{"three clusters with real nodes come up", true, clustersComeUp},
		{"the hub installs as the README says, where Pod Security `restricted` is enforced", true, hubInstalls},
		{"a registration token becomes a values.yaml", true, tokenBecomesValues},
		{"an agent registers a new cluster with labels; `helm install --wait` returns when joined", true, newClusterRegisters},
		{"an agent registers the predefined cluster of its client ID", true, predefinedClusterRegisters},
		{"`kubectl get clusters` shows both as in the guide", false, clustersAreShown},
		{"join.sh joins a MemberCluster", true, memberClusterJoins},
		{"`kubectl get membercluster` shows it joined, with its node and its resources", false, memberClusterIsShown},
		{"the hub is a member of its own fleet", false, localClusterIsThere},
		{"every member has a ClusterProfile", false, profilesAreShown},
		{"a Pod that is not `restricted` is refused beside the agent", false, privilegedPodIsRefused},
		{"a Bundle brings a Deployment that becomes ready", false, bundleIsDelivered},
		{"a Bundle whose Deployment does not become ready says so, and is ready when it is corrected", false, unreadyBundleIsReported},
		{"an agent whose container is killed goes on as the same member", false, agentContainerKilled},
		{"a hub whose container is killed goes on", false, hubContainerKilled},
		{"a hub whose pod is deleted goes on", false, hubPodDeleted},
		{"of two replicas of the hub, the other one takes over when the leader's pod is deleted", false, leaderDeleted},
		{"a drain of its node does not take both replicas of the hub", false, drainLeavesOneHub},
		{"helm upgrade and rollback of an agent leave one member, joined", false, agentUpgradedAndRolledBack},
		{"an agent whose node is drained waits, and goes on when it is uncordoned", false, nodeDrained},
		{"a node whose kubelet stopped is not counted as ready, and its agent is not lost", false, kubeletStopped},
		{"a member whose network is cut is lost, and ready again when it is restored", false, networkCut},
		{"a hub whose machine was switched off finds its members again", false, hubSwitchedOff},
		{"an image that is missing fails `helm install --wait`, and the Pod's events say why", false, imageMissing},
		{"a quota that forbids the agent fails `helm install --wait`, and an event says why", false, quotaForbids},
		{"an admission policy that refuses the agent fails `helm install --wait`, and an event says why", false, policyRefuses},
		{"agents stayed within a limit of 64 MiB all the time", false, memoryHeld},
		{"a Bundle that is deleted takes its Deployment with it", false, bundleIsDeleted},
		{"leave.sh takes the MemberCluster out, and its agent with it", false, memberClusterLeaves},
		{"a Cluster that is deleted leaves nothing on the hub, and its agent is uninstalled", false, clusterIsDeleted},
		{"an agent that is installed while no hub runs waits, and joins when there is one", false, agentBeforeHub},
		{"the hub installs an agent itself, by the kubeconfig of a cluster", false, clusterIsImported},
	}
}
