package reasons

import clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"

// Reasons reported by the agent.
const (
	// DeployerNotRunning: nothing is deployed or applied, because the deployer does not run;
	// Monitored of a BundleDeployment, Applied of a Work.
	DeployerNotRunning = "DeployerNotRunning"
	// InternalMemberClusterHealthy: the API server of the member is healthy; Healthy of a report.
	InternalMemberClusterHealthy = "InternalMemberClusterHealthy"
	// InternalMemberClusterJoined: the agent has joined; Joined of a report.
	InternalMemberClusterJoined = "InternalMemberClusterJoined"
	// InternalMemberClusterLeft: the agent has left; Joined of a report.
	InternalMemberClusterLeft = clusterv1beta1.ReasonInternalMemberClusterLeft
	// InternalMemberClusterUnhealthy: the API server of the member is unhealthy; Healthy of a report.
	InternalMemberClusterUnhealthy = "InternalMemberClusterUnhealthy"
)
