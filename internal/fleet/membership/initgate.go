package membership

import (
	"fmt"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// Initializing reports whether the init gates of a Cluster hold back deliveries. A Cluster with
// unchecked gates counts, so nothing is delivered too early.
func Initializing(cluster *fleet.Cluster) bool {
	at := cluster.Status.Initialization
	return len(cluster.Spec.InitGates) > 0 && (at == nil || at.Finished == nil)
}

// NextInitGate returns the next gate of an initializing Cluster, and its index.
func NextInitGate(cluster *fleet.Cluster) (gate fleet.InitGate, index int) {
	if at := cluster.Status.Initialization; at != nil {
		index = min(at.Opened, len(cluster.Spec.InitGates)-1) // a user may have removed some
	}
	return cluster.Spec.InitGates[index], index
}

// HeldByInitGate returns the reason why the init gates of a Cluster hold back a Bundle, "" if they
// do not. The Bundles of open gates and of the next one go ahead, and the agent's.
func HeldByInitGate(cluster *fleet.Cluster, bundle *fleet.Bundle) string {
	if !Initializing(cluster) || bundle.Labels[fleet.LabelAgent] != "" {
		return ""
	}
	next, index := NextInitGate(cluster)
	if bundle.Namespace == cluster.Namespace {
		for _, gate := range cluster.Spec.InitGates[:index+1] {
			if gate.Bundle == bundle.Name {
				return ""
			}
		}
	}
	return fmt.Sprintf("the Cluster is not initialized yet; its next init gate waits for %s", InitGateName(next))
}

// InitGateName returns the object or condition of a gate, in words.
func InitGateName(gate fleet.InitGate) string {
	if gate.Bundle != "" {
		return "Bundle " + gate.Bundle
	}
	return "condition " + gate.Condition
}
