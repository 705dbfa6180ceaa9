package registration

import (
	"context"
	"fmt"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

// holder is the current agent of a Cluster, in relation to a request. A pinned key keeps its holder
// even without an identity. The hub deletes an identity before the same agent gets another one, and
// a user may have deleted it.
type holder string

const (
	// noHolder: the Cluster has no identity and no other pinned key, or has the identity of this very
	// request.
	noHolder holder = ""
	// sameHolder: the request is signed with the key pinned to the Cluster, and the Cluster has an
	// identity.
	sameHolder  holder = "Same"
	holderAlive holder = "Alive"
	// holderLost: the Cluster belongs to another agent. This agent is Lost, has left, or has no
	// identity any more.
	holderLost holder = "Lost"
)

// displaces returns the reason why a request needs approval, because it would replace another agent
// of the Cluster; "" if it needs none. A token bound to the Cluster is an approval. A missing
// heartbeat of the holder is none, unless the hub's settings say so.
func (o observed) displaces(c clusterView) (reason, why string) {
	switch {
	case c.holder == noHolder || c.holder == sameHolder || o.displacement == settings.DisplaceAny,
		o.limits.cluster == c.name, o.limits.clientID != "" && o.limits.clientID == o.clientID:
		return "", ""
	case c.holder == holderAlive:
		return reasons.HolderAlive,
			fmt.Sprintf("Cluster %s/%s has a live agent, and nothing proves that this request comes from the same cluster", o.workspace, c.name)
	case o.displacement == settings.DisplaceLost:
		return "", ""
	}
	return reasons.HolderLost, fmt.Sprintf("Cluster %s/%s has an agent that was lost or has left, and nothing proves that this request "+
		"comes from the same cluster", o.workspace, c.name)
}

// observeHolder determines the agent with the identity of a Cluster.
func (c *Controller) observeHolder(ctx context.Context, r *fleet.ClusterRegistration, cluster *fleet.Cluster, key string) (holder, error) {
	account, err := membernamespace.OfCluster(cluster).ReadAccount(ctx, c.Client)
	pinned, isPinned := cluster.Annotations[fleet.AnnotationAgentKey] // empty: the Cluster was granted to an agent without a key
	switch {
	case err != nil:
		return noHolder, err
	case membernamespace.IssuedFor(account, r), account.UID == "" && (!isPinned || pinned == key):
		return noHolder, nil
	case key != "" && key == pinned:
		return sameHolder, nil
	}
	switch membership.ClusterStatus(&cluster.Status, nil).Agent {
	case membership.AgentLost, membership.AgentLeft, membership.AgentRevoked:
		return holderLost, nil
	default:
		return holderAlive, nil
	}
}
