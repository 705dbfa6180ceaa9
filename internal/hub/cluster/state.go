package cluster

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/hub/rollup"
	"github.com/muster-fleet/muster/internal/kube"
)

// The life of a Cluster, as its Ready condition tells it:
//
//	           agent joins        silence
//	WaitCheckIn ─────────► Ready ◄───────► AgentLost
//	    │ ▲                │   ▲
//	    ▼ │                ▼   │
//	NamespaceTaken     IdentityMissing            any ──deleted──► Leaving ──► (gone)
//
// An agent that has registered elsewhere says so last: AgentLeft stands in the place of AgentLost, until one registers again.
// Leaving is skipped unless the agent is to remove what was delivered, and can be asked to.
// While the agent beats, the worst state of the Bundles on the Cluster stands in the place of Ready.
const (
	reasonReady       = "Ready"
	reasonWaitCheckIn = "WaitCheckIn"
	// ReasonAgentLost and ReasonIdentityMissing are what the importer mends.
	ReasonAgentLost       = "AgentLost"
	ReasonIdentityMissing = "IdentityMissing"
	// reasonAgentLeft is nothing to mend: the cluster is somewhere else.
	reasonAgentLeft            = "AgentLeft"
	reasonNamespaceTaken       = "NamespaceTaken"
	reasonNamespaceTerminating = "NamespaceTerminating"
	reasonLeaving              = clusterv1beta1.ReasonLeaving
)

// refreshLastSeen is how old a shown beat may get while a member is online.
const refreshLastSeen = 5 * time.Minute

// settle is how long the first beat of a native agent may wait for its first report, so that one write shows both.
const settle = 200 * time.Millisecond

// replacing is for how long an identity may be missing before that is said: a registration deletes it and makes another one.
const replacing = time.Second

// observed is all that the status of a Cluster depends on.
type observed struct {
	deleted time.Time // zero unless it is being deleted
	// leavePolicy is what becomes of what is on it then; policyProblem says what is wrong with what the record asks for.
	leavePolicy     clusterv1beta1.LeavePolicy
	policyProblem   string
	memberNamespace string
	namespace       membership.NamespaceState
	namespaceUID    types.UID // empty if there is none
	// identity is the kind of agent that an identity exists for; "" if there is none.
	identity membership.AgentKind
	// missing is since when there is none; zero if there is one.
	missing time.Time
	report  *clusterv1beta1.InternalMemberCluster // nil if there is none
	// managed: the hub itself installs the agent, and the condition Imported in before says how that goes.
	managed  bool
	liveness liveness.State
	// lastBeat is when the hub saw the last beat; zero if not since it started.
	lastBeat time.Time
	// bundles is how the Bundles on the Cluster stand, and resources counts what they deployed.
	bundles   fleet.BundleSummary
	resources fleet.ResourceCounts
	// clockSkew is by how many seconds the member's clock is ahead; nil if not known.
	clockSkew *int64
	// hub is where the agent should reach it, turn how long its turn to move there is away.
	hub  *clusterv1beta1.HubAddress
	turn time.Duration
	// before is the status as it is.
	before fleet.ClusterStatus
}

func (o observed) reach() membership.Reach { return membership.Reach{Desired: o.hub, Report: o.report} }

// verdict is what the Ready condition says.
type verdict struct {
	ready           bool
	reason, message string
}

// joined says whether the agent was ever heard of.
func (o observed) joined() bool { return !o.before.Agent.LastSeen.IsZero() || !o.lastBeat.IsZero() }

// unsettled is for how long a first beat may go unsaid, because the report of it is under way, or that the identity is missing, because
// another one is.
func (o observed) unsettled(now time.Time) time.Duration {
	if o.namespace == membership.NamespaceOurs && !o.missing.IsZero() && o.joined() && !o.recordedMissing() {
		return max(0, o.missing.Add(replacing).Sub(now))
	}
	reported := o.report != nil && o.report.Status.AgentVersion != ""
	if o.identity != membership.Native || reported || !o.before.Agent.LastSeen.IsZero() || o.lastBeat.IsZero() {
		return 0
	}
	return max(0, o.lastBeat.Add(settle).Sub(now))
}

// judge says how the Cluster is. Only what a person should look at has a message.
func judge(o observed) verdict {
	joined := o.joined()
	switch {
	case o.namespace == membership.NamespaceTaken:
		return verdict{reason: reasonNamespaceTaken, message: fmt.Sprintf(
			"namespace %s exists and was not made for this Cluster: delete it, or delete the Cluster and create it under another name", o.memberNamespace)}
	case o.namespace == membership.NamespaceTerminating:
		return verdict{reason: reasonNamespaceTerminating, message: fmt.Sprintf("namespace %s is being deleted; it is made anew when it is gone", o.memberNamespace)}
	case o.identity == "" && joined && o.managed:
		return verdict{reason: ReasonIdentityMissing, message: and("the identity of the agent is gone: the hub installs the agent again", o.importProblem())}
	case o.identity == "" && joined:
		return verdict{reason: ReasonIdentityMissing, message: "the identity of the agent is gone: give the cluster a new registration token and let it register again"}
	case !joined:
		return judgeAbsent(o)
	case o.left() != "":
		return verdict{reason: reasonAgentLeft, message: "the agent has left: " + o.left() +
			"; delete this Cluster, or give the cluster a registration token of this workspace"}
	case o.liveness == liveness.Lost, o.liveness == liveness.Unknown && o.recordedLost():
		return verdict{reason: ReasonAgentLost, message: and(o.lostSince(), o.importProblem())}
	case o.bundles.Ready < o.bundles.DesiredReady:
		return verdict{reason: string(rollup.Worst(o.bundles)), message: and(rollup.Explain("Bundle", o.bundles), o.importProblem())}
	}
	if problem := o.importProblem(); problem != "" {
		return verdict{ready: true, reason: reasonReady, message: "the agent is well, but cannot be installed again: " + problem}
	}
	if _, left := membership.NotPruned(o.report); left != "" {
		return verdict{ready: true, reason: reasonReady, message: "everything is deployed, but something that should be gone is not removed: " + left}
	}
	return verdict{ready: true, reason: reasonReady, message: o.registering()}
}

// left is what an agent said that has left without being asked to, or "".
func (o observed) left() string {
	joined := membership.AgentCondition(o.report, clusterv1beta1.ConditionJoined)
	if joined == nil || joined.Status != metav1.ConditionFalse || joined.Reason != clusterv1beta1.ReasonInternalMemberClusterLeft {
		return ""
	}
	return kube.Clip(joined.Message, maxClaim)
}

// registering says that the agent is about to register elsewhere, and what it waits for; else "".
func (o observed) registering() string {
	joined := membership.AgentCondition(o.report, clusterv1beta1.ConditionJoined)
	if joined == nil || joined.Reason != clusterv1beta1.ReasonRegistering {
		return ""
	}
	return "the agent is well; " + kube.Clip(joined.Message, maxClaim)
}

// maxClaim bounds what is shown of what a member wrote.
const maxClaim = 512

func (o observed) lostSince() string {
	return fmt.Sprintf("agent lost: no heartbeat since %s", lastSeen(o).UTC().Format(time.RFC3339))
}

// judgeAbsent says what an agent that was never heard of waits for.
func judgeAbsent(o observed) verdict {
	imported := kube.FindCondition(o.before.Conditions, fleet.ConditionImported)
	switch {
	case !o.managed:
		return verdict{reason: reasonWaitCheckIn, message: "waiting for an agent to register and send its first heartbeat"}
	case imported == nil:
		return verdict{reason: reasonWaitCheckIn, message: "the hub is installing the agent"}
	case imported.Status != corev1.ConditionTrue:
		return verdict{reason: imported.Reason, message: imported.Message}
	}
	return verdict{reason: reasonWaitCheckIn, message: "the agent is installed; waiting for it to register and send its first heartbeat"}
}

// importProblem is why the hub cannot install the agent, or "".
func (o observed) importProblem() string {
	if imported := kube.FindCondition(o.before.Conditions, fleet.ConditionImported); o.managed && imported != nil && imported.Status != corev1.ConditionTrue {
		return imported.Message
	}
	return ""
}

// and joins two sentences, of which the second may be missing.
func and(first, second string) string {
	if second == "" {
		return first
	}
	return first + "; " + second
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
