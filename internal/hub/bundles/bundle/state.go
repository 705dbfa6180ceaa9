package bundle

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/delivery/customization"
	"github.com/muster-fleet/muster/internal/delivery/templates"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/selection"
	"github.com/muster-fleet/muster/internal/hub/bundles/policy"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
)

// The life cycle of the deployment of a Bundle on a Cluster, with the states of the Bundle's
// summary:
//
// Paused, OutsideWindow and WaitingForDependency are waits before WaitApplied.
//
//	              released              agent deploys              all ready
//	 Pending ───────────────► WaitApplied ───────────► NotReady ◄───────────► Ready
//	    ▲                         │  ▲                                          ▲ │
//	    │ the Bundle changes      ▼  │ next attempt              corrected      │ ▼ changed downstream
//	  (any)                   ErrApplied                                     Modified
//
// OutOfSync is a deployment after a failed write. A Cluster without a match, or of a deleted
// Bundle, has none.

// target is a selected Cluster of the Bundle, and its deployment.
type target struct {
	cluster *fleet.Cluster
	// matched holds the indexes of the Bundle's targets for the options.
	matched []int
	// rules for merging the options.
	rules customization.Rules
	// completion holds the options added by the Policies of the namespace.
	completion policy.Completion
	// partition is the rollout partition of the Cluster.
	partition int
	// desired is the deployment after its release, without its options.
	desired *fleet.BundleDeployment
	// hasValues reports whether its options have values. They are in a separate Secret. copies are
	// the objects to copy to the member namespace.
	hasValues bool
	copies    []fleet.DownstreamResource
	// problem is the reason why the Bundle is invalid for this Cluster.
	problem error
	// heldBack is the reason why the Cluster does not take the Bundle yet: an init gate, a cordon, or
	// a taint; "" without one.
	heldBack string
	// deployment is the cached deployment, or the written one while it is missing in the cache;
	// nil if there is none.
	deployment *fleet.BundleDeployment
	// pending limits the wait for the last write to reach the cache. Until then the deployment is
	// not written again.
	pending time.Duration
	// digest is the digest of the desired options. answered is the digest of the options in the
	// server's answer to a write.
	digest, answered string
	// valuesLost reports whether the Secret with its values is gone, or has others, or a copy is gone.
	valuesLost bool
	// failure is the error of a failed write.
	failure error
}

// observed is the input of decide.
type observed struct {
	bundle  *fleet.Bundle
	content packed
	// problem is the reason why the Bundle is invalid for all Clusters. Its deployments stay
	// unchanged.
	problem error
	// mappingProblem is the reason why possible BundleNamespaceMappings of the Bundle open
	// nothing. Other namespaces are not affected.
	mappingProblem error
	// endless is the reason why the Bundle waits for another one without end; nil if there is none.
	endless *endless
	// targets are sorted by workspace and name.
	targets []target
	// unmatched holds the targets without a matching Cluster. outranked has the first sentences on
	// Clusters that a later target excludes without effect, outrankedCount their number.
	// absentGroups is the end of a message about ClusterGroups that do not exist.
	unmatched      selection.Unmatched
	absentGroups   string
	outranked      []string
	outrankedCount int
	brakeSetting
	// leftover holds the deployments on Clusters outside the Bundle's targets.
	leftover []leftover
	// confirmed is a removal confirmed by a user but not finished.
	confirmed confirmed
	// ours reports whether this hub made the first deployment of the Bundle.
	ours bool
	// copies are the objects in downstreamResources, read for the targets to write.
	copies map[fleet.DownstreamResource]client.Object
}

// leftover is a deployment to delete.
type leftover struct {
	deployment *fleet.BundleDeployment
	cause      removal.Cause
}

// valid reports whether the desired deployments are known.
func (o observed) valid() bool { return o.problem == nil }

// packed is the Content of a Bundle, or the problem with its resources.
type packed struct {
	name, sum string
	// chart reports whether the resources contain a chart.
	chart   bool
	problem error
}

// current reports whether the deployment has the desired deployment ID.
func (t target) current() bool {
	return t.deployment != nil && t.deployment.Spec.DeploymentID == t.desired.Spec.DeploymentID
}

// edited reports whether another client changed the options. They are corrected without regard to
// the rollout, because the agent already has the edit.
func (t target) edited() bool {
	return t.deployment != nil && t.pending == 0 && t.problem == nil && t.current() && t.deployment.Annotations[cachedDigest] != t.digest
}

// available reports whether the deployment is in place and ready.
func (t target) available() bool {
	return t.deployment != nil && rollup.Available(t.deployment)
}

// blocked reports whether another cause than the rollout stops changes of the deployment.
func (t target) blocked() bool {
	return t.problem != nil || t.desired.Spec.Paused || t.desired.Spec.OffSchedule || t.heldBack != ""
}

// decide plans the rollout.
func decide(o observed) plan {
	candidates, held := make([]candidate, len(o.targets)), o.takeover() != ""
	for i, t := range o.targets {
		candidates[i] = candidate{
			partition: t.partition, blocked: t.blocked() || held && t.changes(), exists: t.deployment != nil && t.deployment.Spec.DeploymentID != "",
			current: t.problem == nil && t.current(), available: t.available(), pending: t.pending > 0,
		}
	}
	return rollout(o.bundle.Spec.RolloutStrategy, candidates)
}

// needsWrite reports whether a deployment must be written, released or not.
func (t target) needsWrite(released bool) bool {
	if t.problem != nil || t.pending > 0 {
		return false
	}
	if t.deployment == nil {
		return true // a held-back deployment keeps the agent from removing the workload
	}
	have, desired := t.deployment, t.desired
	return released || t.valuesLost && t.current() || t.edited() ||
		have.Spec.StagedDeploymentID != desired.Spec.StagedDeploymentID || have.Spec.Paused != desired.Spec.Paused ||
		have.Spec.OffSchedule != desired.Spec.OffSchedule ||
		!equality.Semantic.DeepEqual(have.Spec.DependsOn, desired.Spec.DependsOn) || !equality.Semantic.DeepEqual(have.Labels, desired.Labels)
}

// entry returns the state of a target in the summary, after the plan is carried out.
func (t target) entry(workspace string, released bool) rollup.Entry {
	e := rollup.Entry{Name: nameFrom(workspace, t.cluster.Namespace, t.cluster.Name), Deployment: t.deployment}
	switch {
	case t.failure != nil:
		e.State, e.Message = fleet.StateOutOfSync, t.failure.Error()
	case t.problem != nil:
		e.State, e.Message = fleet.StateErrApplied, t.problem.Error()
		// the filled values are not for readers of the Bundle
		if quotes := templates.Error(""); t.cluster.Namespace != workspace && errors.As(t.problem, &quotes) {
			e.Message = "a template in its values cannot be filled in for this Cluster of another workspace; try it with one of your own, which " +
				"shows why"
		}
	case released:
		e.State, e.Message = fleet.StateWaitApplied, "the agent has not reported it yet"
	case !t.current() && t.desired.Spec.Paused:
		e.State, e.Message = fleet.StatePaused, pausedBy(t.cluster)
	case !t.current() && t.desired.Spec.OffSchedule:
		e.State, e.Message = fleet.StateOutsideWindow, membership.OutsideWindow(&t.cluster.Status)
	case !t.current() && t.heldBack != "":
		e.State, e.Message = fleet.StateWaitingForDependency, t.heldBack
	case !t.current():
		e.State, e.Message = fleet.StatePending, "held back by the rollout"
	default:
		e.State, e.Message = delivery.EffectiveState(t.deployment), rollup.Message(t.deployment)
		switch e.State {
		case fleet.StatePaused:
			e.Message = pausedBy(t.cluster)
		case fleet.StateOutsideWindow:
			e.Message = membership.OutsideWindow(&t.cluster.Status)
		default: // the agent's message
		}
	}
	switch gone := gone(t.cluster); {
	case e.State == fleet.StateWaitApplied && lostMessage(t.cluster) != "":
		e.Message, e.Gone = lostMessage(t.cluster), gone != ""
	case gone != "" && t.failure == nil && t.problem == nil && t.deployment != nil:
		e = e.AsOf(gone, t.cluster.Status.Agent.LastSeen.Time)
	}
	return e
}

func pausedBy(cluster *fleet.Cluster) string {
	if membership.Paused(cluster) {
		return "the Cluster is paused"
	}
	return "the Bundle is paused"
}

// lostMessage returns the Cluster's message about an agent without reports.
func lostMessage(cluster *fleet.Cluster) string {
	switch status := membership.ClusterStatus(&cluster.Status, nil); status.Agent {
	case membership.AgentLost, membership.AgentAwaited, membership.AgentRevoked:
		return status.Message
	default:
		return ""
	}
}

// taken returns the error for a name in use by another Bundle's deployment.
func taken(d *fleet.BundleDeployment) error {
	return fmt.Errorf("the Bundle %s/%s of the same name is on this Cluster: rename one of the two",
		d.Labels[fleet.LabelBundleNamespace], d.Name)
}
