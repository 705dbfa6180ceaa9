package bundle

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/bundles/templates"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
)

// The life of the deployment of a Bundle on a Cluster, as the summary of the Bundle counts it:
//
//	              released              agent deploys              all ready
//	 Pending ───────────────► WaitApplied ───────────► NotReady ◄───────────► Ready
//	    ▲                         │  ▲                                          ▲ │
//	    │ the Bundle changes      ▼  │ next attempt              corrected      │ ▼ changed downstream
//	  (any)                   ErrApplied                                     Modified
//
// OutOfSync is a deployment that could not be written. A Cluster that no longer matches, or whose
// Bundle is deleted, has none.

// target is a Cluster that the Bundle is for, and its deployment.
type target struct {
	cluster *fleet.Cluster
	// matched are the indexes of the targets of the Bundle that give the options.
	matched []int
	// rules by which the options are made.
	rules rules
	// partition of the rollout that the Cluster is in.
	partition int
	// desired is the deployment as it should be once it is released, without its options.
	desired *fleet.BundleDeployment
	// hasValues says that its options have values, which are in a Secret of its own.
	hasValues bool
	// problem is why the Bundle is invalid for this Cluster.
	problem error
	// deployment as the cache has it, or as it was written if the cache does not show that yet;
	// nil if there is none.
	deployment *fleet.BundleDeployment
	// pending is how long to wait at most for the cache to show the last write; until then the
	// deployment is not written again.
	pending time.Duration
	// digest is that of the desired options, answered that of the options in the
	// server's answer to a write.
	digest, answered string
	// valuesLost says that the Secret with its values is gone, or has others.
	valuesLost bool
	// failure is why a write failed.
	failure error
}

// observed is all that decide needs.
type observed struct {
	bundle  *fleet.Bundle
	content packed
	// problem is why the Bundle is invalid for all Clusters; its deployments are left as they are.
	problem error
	// mappingProblem is why BundleNamespaceMappings that may be for the Bundle open nothing; other
	// namespaces are not affected.
	mappingProblem error
	// targets are sorted by workspace and name.
	targets []target
	brakeSetting
	// leftover are the deployments on Clusters that the Bundle is not for, or not any more.
	leftover []leftover
	// confirmed is the removal that a user has confirmed and that is not done.
	confirmed confirmed
}

// leftover is a deployment that is to be deleted.
type leftover struct {
	deployment *fleet.BundleDeployment
	cause      removal.Cause
}

// valid says whether it is known which deployments there should be.
func (o observed) valid() bool { return o.problem == nil }

// packed is the Content of a Bundle, or the problem with its resources.
type packed struct {
	name, sum string
	// chart says that there is a chart among them.
	chart   bool
	problem error
}

// current says whether the deployment has the desired deployment ID.
func (t target) current() bool {
	return t.deployment != nil && t.deployment.Spec.DeploymentID == t.desired.Spec.DeploymentID
}

// edited says whether somebody else changed the options. They are corrected without regard to the
// rollout, because the agent has the edit already.
func (t target) edited() bool {
	return t.deployment != nil && t.pending == 0 && t.problem == nil && t.current() && t.deployment.Annotations[cachedDigest] != t.digest
}

// available says whether the deployment is in place and ready.
func (t target) available() bool {
	return t.deployment != nil && rollup.Available(t.deployment)
}

// blocked says whether something other than the rollout keeps the deployment as it is.
func (t target) blocked() bool { return t.problem != nil || t.desired.Spec.Paused }

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

// needsWrite says whether a deployment that is there has to be changed, released or not.
func (t target) needsWrite(released bool) bool {
	if t.problem != nil || t.pending > 0 {
		return false
	}
	if t.deployment == nil {
		return true // one that is held back keeps the agent from taking the absence of the object for a removal
	}
	have, desired := t.deployment, t.desired
	return released || t.valuesLost && t.current() || t.edited() ||
		have.Spec.StagedDeploymentID != desired.Spec.StagedDeploymentID || have.Spec.Paused != desired.Spec.Paused ||
		!equality.Semantic.DeepEqual(have.Spec.DependsOn, desired.Spec.DependsOn) || !equality.Semantic.DeepEqual(have.Labels, desired.Labels)
}

// entry is the state of a target in the summary, once the plan is carried out.
func (t target) entry(workspace string, released bool) rollup.Entry {
	e := rollup.Entry{Name: nameFrom(workspace, t.cluster.Namespace, t.cluster.Name), Deployment: t.deployment}
	switch {
	case t.failure != nil:
		e.State, e.Message = fleet.StateOutOfSync, t.failure.Error()
	case t.problem != nil:
		e.State, e.Message = fleet.StateErrApplied, t.problem.Error()
		// what is filled in is not for readers of the Bundle
		if quotes := templates.Error(""); t.cluster.Namespace != workspace && errors.As(t.problem, &quotes) {
			e.Message = "a template in its values cannot be filled in for this Cluster of another workspace; try it with one of your own, which " +
				"shows why"
		}
	case released:
		e.State, e.Message = fleet.StateWaitApplied, "the agent has not reported it yet"
	case !t.current() && t.desired.Spec.Paused:
		e.State, e.Message = fleet.StatePending, pausedBy(t.cluster)
	case !t.current():
		e.State, e.Message = fleet.StatePending, "held back by the rollout"
	default:
		e.State, e.Message = rollup.StateOf(t.deployment), rollup.Message(t.deployment)
	}
	if lost := lostMessage(t.cluster); lost != "" && e.State == fleet.StateWaitApplied {
		e.Message = lost
	}
	return e
}

func pausedBy(cluster *fleet.Cluster) string {
	if cluster.Spec.Paused {
		return "the Cluster is paused"
	}
	return "the Bundle is paused"
}

// lostMessage is what the Cluster says of an agent that cannot report.
func lostMessage(cluster *fleet.Cluster) string {
	switch status := membership.ClusterStatus(&cluster.Status, nil); status.Agent {
	case membership.AgentLost, membership.AgentAwaited, membership.AgentRevoked:
		return status.Message
	default:
		return ""
	}
}

// taken says that another Bundle's deployment has the name.
func taken(d *fleet.BundleDeployment) error {
	return fmt.Errorf("the Bundle %s/%s of the same name is on this Cluster: rename one of the two",
		d.Labels[fleet.LabelBundleNamespace], d.Name)
}
