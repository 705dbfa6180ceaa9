package view

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// HistoryOf returns the last changes in the life of a member, the oldest first; none of any other
// object.
func HistoryOf(o client.Object) []clusterv1beta1.HistoryEntry {
	switch member := o.(type) {
	case *fleet.Cluster:
		return member.Status.History
	case *clusterv1beta1.MemberCluster:
		return member.Status.History
	}
	return nil
}
