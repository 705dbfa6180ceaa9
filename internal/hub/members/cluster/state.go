package cluster

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/credentials/renewal"
	"github.com/muster-fleet/muster/internal/hub/members/lifecycle"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// replacing is the longest absence of an identity without a change of the status. A registration
// deletes an identity before it creates another one.
const replacing = time.Second

// observed holds the inputs for the status and the next step of a Cluster.
type observed struct {
	lifecycle.Observed
	// agent is the kind of the acting agent; "" if there is no account.
	agent   membership.AgentKind
	account account
	// period is the heartbeat period in the spec; 0 for a choice of the hub.
	period time.Duration
	// healthCheck has the thresholds of the health check; nil if each result counts.
	healthCheck *clusterv1beta1.HealthCheck
	// missing is the time since when there is no account; zero if there is one.
	missing time.Time
	// dropped is the report of an agent of Muster's after its replacement by a Rancher Fleet agent.
	dropped *clusterv1beta1.InternalMemberCluster
	// elsewhere is the value of the label of another manager of the Cluster; "" if there is none.
	elsewhere string
	// managed: the hub itself installs the agent, and the condition Imported shows the progress.
	managed bool
	// moment is the remaining wait of a status without a heartbeat for the next step of a join. The
	// hub has just created the Cluster for a request, or just begun or completed an import.
	moment time.Duration
	// installing is the begin of a change to the agent's own BundleDeployment that does not count yet;
	// zero if there is none.
	installing time.Time
	// labels holds the labels requested by the agent and the labels stamped by its token.
	labels membernamespace.LabelRecord
	// deployments are the BundleDeployments in the member namespace, from the cache.
	deployments []fleet.BundleDeployment
	// bundles is the summary of the Bundles on the Cluster, and resources counts their resources.
	bundles   fleet.BundleSummary
	resources fleet.ResourceCounts
	// repositories and helmOps are the GitRepos and HelmOps behind the Bundles on the Cluster.
	repositories, helmOps sources
	// delivered: there are BundleDeployments but for the agent's own.
	delivered bool
	// approval is the state of the Cluster's approval.
	approval approval
	// denied: an approver has denied deliveries. deniedBecause is the reason, in brackets.
	denied        bool
	deniedBecause string
	// credential holds the inputs for decisions about the credential of the agent.
	credential renewal.State
	// rival is an agent waiting for the active agent.
	rival  lifecycle.Rival
	before fleet.ClusterStatus
	// recorded is the agent's state according to the previous status.
	recorded membership.AgentState
}

// result is the state of the agent and the content of the Ready condition.
type result struct {
	agent           membership.AgentState
	ready           bool
	reason, message string
}

// unsettled returns the remaining wait of the status. It waits for the first report after a first
// heartbeat, for the replacement of a missing identity, or for the next step of a join.
func (o observed) unsettled(now time.Time) time.Duration {
	if o.NamespaceState == membernamespace.NamespaceOurs && !o.missing.IsZero() && o.Seen() && o.recorded != membership.AgentRevoked {
		return max(0, o.missing.Add(replacing).Sub(now))
	}
	if o.moment > 0 && o.NamespaceState == membernamespace.NamespaceOurs && readiness(o).agent == membership.AgentAwaited {
		return o.moment
	}
	reported := o.Report != nil && o.Report.Status.AgentVersion != ""
	if o.agent != membership.Native || reported {
		return 0
	}
	return o.Settling(now)
}

// wait returns the delay until a reconcile without an event; zero if only events can change
// anything.
func (o observed) wait(now time.Time) time.Duration {
	wait := o.credential.Wait(o.waitForMember(now), now)
	if left := max(o.rival.Until.Sub(now), time.Millisecond); !o.rival.Until.IsZero() && (wait == 0 || left < wait) {
		wait = left
	}
	if left := max(o.installing.Add(controller.Adoption).Sub(now), time.Millisecond); !o.installing.IsZero() && (wait == 0 || left < wait) {
		wait = left
	}
	return o.Cleanup.Sooner(wait, now)
}

func (o observed) waitForMember(now time.Time) time.Duration {
	switch {
	case o.QuarantineRetry() > 0:
		return o.QuarantineRetry()
	case o.WaitToMove > 0:
		return o.WaitToMove
	case o.NamespaceState == membernamespace.NamespaceTaken:
		return foreignNamespaceRetry
	case o.agent == membership.Native && o.Liveness.State == liveness.Online:
		return o.RefreshIn(now)
	}
	return 0
}

// readiness returns the state of the agent and the content of the Ready condition. The condition
// has a message only if a user should look at it.
func readiness(o observed) result {
	reason, message := o.NamespaceProblem()
	switch {
	case o.Revoked && o.AccessLeft != "":
		return result{agent: membership.AgentRevoked, reason: reasons.Revoking, message: membership.Revoking(o.AccessLeft)}
	case o.Revoked:
		return result{agent: membership.AgentRevoked, reason: reasons.Revoked,
			message: fmt.Sprintf("revoked by annotation %s: its agent has no access and cannot register, and the hub delivers nothing; "+
				"deliveries on the cluster stay. To restore the access: muster revoke %s/%s --undo, or kubectl -n %s annotate "+
				"cluster.fleet.cattle.io %s %s- %s",
				clusterv1beta1.AnnotationRevoked, o.Workspace, o.Name, o.Workspace, o.Name, clusterv1beta1.AnnotationRevoked,
				o.afterRevocation())}
	case o.elsewhere != "":
		return managedElsewhere(o)
	case reason != "" && !o.Seen():
		return result{agent: membership.AgentAbsent, reason: reason, message: message}
	case reason != "":
		return result{agent: membership.AgentWithoutNamespace, reason: reason, message: message}
	case o.agent == "" && o.Seen() && o.managed:
		return result{agent: membership.AgentRevoked,
			reason: reasons.IdentityMissing, message: and("the identity of the agent is gone: the hub installs the agent again", o.importProblem()),
		}
	case o.agent == "" && o.Seen():
		return result{
			agent: membership.AgentRevoked, reason: reasons.IdentityMissing,
			message: "the identity of the agent is gone: give the cluster a new registration token and let it register again",
		}
	case !o.Seen():
		return awaited(o)
	case o.left() != "":
		return result{agent: membership.AgentLeft, reason: reasons.AgentLeft, message: "the agent has left: " + o.left() +
			"; delete this Cluster, or give the cluster a registration token of this workspace" + o.WithCleanup("")}
	case o.Lost():
		return result{agent: membership.AgentLost, reason: reasons.AgentLost, message: o.WithCleanup(and(o.lostSince(), o.importProblem()))}
	}
	return online(o)
}

// online returns the readiness of a Cluster whose agent sends heartbeats.
func online(o observed) result {
	r := deliveries(o)
	r.agent = membership.AgentOnline
	return r
}

// deliveries returns the readiness of a Cluster according to what its agent has deployed.
func deliveries(o observed) result {
	switch {
	case o.Quarantined:
		return result{reason: reasons.Quarantined, message: o.Quarantine}
	case o.agent == membership.Native && o.Unnamed(o.Report):
		return result{reason: reasons.AgentTooOld, message: o.tooOld()}
	case o.bundles.Ready < o.bundles.DesiredReady:
		return result{reason: rollup.Reason(o.bundles), message: and(rollup.Explain("Bundle", o.bundles), o.importProblem())}
	}
	if problem := o.importProblem(); problem != "" {
		return result{ready: true, reason: reasons.Ready, message: "the agent is healthy, but the hub cannot install it again: " + problem}
	}
	switch reason, left := lifecycle.NotPruned(o.Report); {
	case reason == reasons.HubRestored:
		return result{ready: true, reason: reasons.Ready, message: "all Bundles are deployed, and more: " + left}
	case left != "":
		return result{
			ready: true, reason: reasons.Ready, message: "all Bundles are deployed, but a removal is not complete: " + left,
		}
	}
	if o.approval == approvalAwaited {
		return result{
			ready: true, reason: reasons.Ready,
			message: and("the agent is healthy, and "+o.awaitsApproval(), cmp.Or(o.credential.Cloned(), o.rival.Message, o.registering())),
		}
	}
	return result{ready: true, reason: reasons.Ready, message: cmp.Or(o.credential.Cloned(), o.rival.Message, o.registering())}
}

// afterRevocation returns the necessary step after the end of a revocation.
func (o observed) afterRevocation() string {
	if o.elsewhere != "" {
		return "(another manager then has it)"
	}
	if o.managed {
		return "(the hub then installs the agent again)"
	}
	return "and give the cluster a new registration token"
}

// left returns the message of an agent after it left without a request, or "".
func (o observed) left() string {
	joined := membership.AgentCondition(o.Report, clusterv1beta1.ConditionJoined)
	if joined == nil || joined.Status != metav1.ConditionFalse || joined.Reason != clusterv1beta1.ReasonInternalMemberClusterLeft {
		return ""
	}
	return kube.Clip(joined.Message, maxShown)
}

// tooOld returns the message about an agent without knowledge of its member namespace's name. Its
// Bundle cannot update it either.
func (o observed) tooOld() string {
	return fmt.Sprintf("the agent, of version %s, does not support a namespace with the name %s, and deploys nothing from there: "+
		"upgrade it with helm; or revoke this Cluster once more and register the agent again, and its namespace has a name that the "+
		"agent knows",
		kube.Clip(o.Report.Status.AgentVersion, maxShown), o.Namespace)
}

// registering returns the message of an agent about to register elsewhere, or "".
func (o observed) registering() string {
	joined := membership.AgentCondition(o.Report, clusterv1beta1.ConditionJoined)
	if joined == nil || joined.Reason != clusterv1beta1.ReasonRegistering {
		return ""
	}
	return "the agent is healthy; " + kube.Clip(joined.Message, maxShown)
}

// maxShown bounds the messages of a member.
const maxShown = 512

func (o observed) lostSince() string {
	return fmt.Sprintf("agent lost: no heartbeat since %s", lastSeen(o).UTC().Format(time.RFC3339))
}

// awaited returns the readiness of a Cluster before the first heartbeat of an agent.
func awaited(o observed) result {
	waits := func(message string) result {
		return result{agent: membership.AgentAwaited, reason: reasons.WaitCheckIn, message: message}
	}
	imported := kube.FindCondition(o.before.Conditions, fleet.ConditionImported)
	switch {
	case !o.managed:
		return waits("waiting for an agent to register and send its first heartbeat")
	case imported == nil:
		return waits("the hub is installing the agent")
	case imported.Status != corev1.ConditionTrue:
		return result{agent: membership.AgentAbsent, reason: imported.Reason, message: imported.Message}
	}
	return waits("the agent is installed; waiting for it to register and send its first heartbeat")
}

// importProblem returns the cause of a failed installation of the agent, or "".
func (o observed) importProblem() string {
	if imported := kube.FindCondition(o.before.Conditions, fleet.ConditionImported); o.managed && imported != nil &&
		imported.Status != corev1.ConditionTrue {
		return imported.Message
	}
	return ""
}

// and joins two sentences. The second may be empty.
func and(first, second string) string {
	if second == "" {
		return first
	}
	return first + "; " + second
}

// lastSeen returns the heartbeat to show: the recorded one, unless the hub knows a newer one and it
// justifies a write.
func lastSeen(o observed) time.Time {
	newest := o.LastSeen()
	switch {
	case o.agent == membership.Legacy:
	case o.RecordedBeat.IsZero(), o.RecordedLost, o.Liveness.State == liveness.Lost, newest.Sub(o.RecordedBeat) >= o.Refresh:
		return newest
	}
	return o.RecordedBeat
}
