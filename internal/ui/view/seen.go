package view

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// LastSeen returns the time of the last heartbeat in a membership object; zero without one.
func LastSeen(member client.Object) (last time.Time) {
	switch o := member.(type) {
	case *fleet.Cluster:
		last = o.Status.Agent.LastSeen.Time
	case *clusterv1beta1.MemberCluster:
		for _, agent := range o.Status.AgentStatus {
			if agent.LastReceivedHeartbeat.After(last) {
				last = agent.LastReceivedHeartbeat.Time
			}
		}
	}
	return last
}
