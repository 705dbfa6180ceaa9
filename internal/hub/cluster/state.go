package cluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/hub/rollup"
)

// The life of a Cluster, as its Ready condition tells it:
//
//	           agent joins        silence
//	WaitCheckIn ─────────► Ready ◄───────► AgentLost
//	    │ ▲                │   ▲
//	    ▼ │                ▼   │
//	NamespaceTaken     IdentityMissing            any ──deleted──► (gone)
//
// While the agent beats, the worst state of the Bundles on the Cluster stands in the place of Ready.
const (
	reasonReady                = "Ready"
	reasonWaitCheckIn          = "WaitCheckIn"
	reasonAgentLost            = "AgentLost"
	reasonIdentityMissing      = "IdentityMissing"
	reasonNamespaceTaken       = "NamespaceTaken"
	reasonNamespaceTerminating = "NamespaceTerminating"
)

// refreshLastSeen is how old a shown beat may get while a member is online.
const refreshLastSeen = 5 * time.Minute

// observed is all that the status of a Cluster depends on.
type observed struct {
	memberNamespace string
	namespace       membership.NamespaceState
	namespaceUID    types.UID // empty if there is none
	// identity is the kind of agent that an identity exists for; "" if there is none.
	identity membership.AgentKind
	report   *clusterv1beta1.InternalMemberCluster // nil if there is none
	liveness liveness.State
	// lastBeat is when the hub saw the last beat; zero if not since it started.
	lastBeat time.Time
	// bundles is how the Bundles on the Cluster stand, and resources counts what they deployed.
	bundles   fleet.BundleSummary
	resources fleet.ResourceCounts
	// clockSkew is by how many seconds the member's clock is ahead; nil if not known.
	clockSkew *int64
	// before is the status as it is.
	before fleet.ClusterStatus
}

// verdict is what the Ready condition says.
type verdict struct {
	ready           bool
	reason, message string
}

// joined says whether the agent was ever heard of.
func (o observed) joined() bool { return !o.before.Agent.LastSeen.IsZero() || !o.lastBeat.IsZero() }

// judge says how the Cluster is. Only what a person should look at has a message.
func judge(o observed) verdict {
	joined := o.joined()
	switch {
	case o.namespace == membership.NamespaceTaken:
		return verdict{reason: reasonNamespaceTaken, message: fmt.Sprintf(
			"namespace %s exists and was not made for this Cluster: delete it, or delete the Cluster and create it under another name", o.memberNamespace)}
	case o.namespace == membership.NamespaceTerminating:
		return verdict{reason: reasonNamespaceTerminating, message: fmt.Sprintf("namespace %s is being deleted; it is made anew when it is gone", o.memberNamespace)}
	case o.identity == "" && joined:
		return verdict{reason: reasonIdentityMissing, message: "the identity of the agent is gone: give the cluster a new registration token and let it register again"}
	case !joined:
		return verdict{reason: reasonWaitCheckIn, message: "waiting for an agent to register and send its first heartbeat"}
	case o.liveness == liveness.Lost:
		return verdict{reason: reasonAgentLost, message: fmt.Sprintf("agent lost: no heartbeat since %s", lastSeen(o).UTC().Format(time.RFC3339))}
	case o.liveness == liveness.Unknown && o.recordedLost():
		return verdict{reason: reasonAgentLost, message: fmt.Sprintf("agent lost: no heartbeat since %s", lastSeen(o).UTC().Format(time.RFC3339))}
	case o.bundles.Ready < o.bundles.DesiredReady:
		return verdict{reason: string(rollup.Worst(o.bundles)), message: rollup.Explain("Bundle", o.bundles)}
	}
	return verdict{ready: true, reason: reasonReady}
}

// lastSeen is the beat to show: the one recorded, unless the hub knows a newer one that is worth a write.
func lastSeen(o observed) time.Time {
	recorded := o.before.Agent.LastSeen.Time
	switch {
	case o.identity == membership.Legacy, o.lastBeat.IsZero():
		return recorded
	case recorded.IsZero(), o.recordedLost(), o.liveness == liveness.Lost, o.lastBeat.Sub(recorded) >= refreshLastSeen:
		return o.lastBeat
	}
	return recorded
}
