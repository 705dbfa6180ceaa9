package bundle

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/rollup"
	"github.com/muster-fleet/muster/internal/kube"
)

// The life of the deployment of a Bundle on a Cluster, as the Bundle's summary tells it:
//
//	             turn comes             agent deploys              all ready
//	 Pending ───────────────► WaitApplied ───────────► NotReady ◄───────────► Ready
//	    ▲                         │  ▲                                          ▲ │
//	    │ the Bundle changes      ▼  │ next attempt              corrected      │ ▼ changed downstream
//	  (any)                   ErrApplied                                     Modified
//
// OutOfSync is a deployment that could not be written. A Cluster that stops matching, or whose Bundle goes, has none.

// target is a Cluster that the Bundle is for, and how its deployment stands.
type target struct {
	cluster *fleet.Cluster
	// matched are the indexes of the targets of the Bundle that give the options.
	matched []int
	// partition of the rollout that the Cluster is in.
	partition int
	// want is the deployment as it should be once it is released, without options. Only its metadata and the rest of its spec count.
	want *fleet.BundleDeployment
	// hasValues says that its options have values, which are in a Secret of its own.
	hasValues bool
	// problem is why the Bundle does not make sense for this Cluster.
	problem error
	// deployment as the cache has it; nil if there is none.
	deployment *fleet.BundleDeployment
	// settling says that a write is under way, of this deployment ID.
	settling bool
	written  string
	// digest is that of what its agent should be told, answered the one that the server's answer to a write had.
	digest, answered string
	// valuesLost says that the Secret with its values is gone, or has others.
	valuesLost bool
	// failure is why a write failed.
	failure error
}

// observed is all that is decided upon.
type observed struct {
	bundle  *fleet.Bundle
	content packed
	// problem is why the Bundle makes no sense for any Cluster. Then its deployments are left as they are.
	problem error
	// targets are sorted by workspace and name.
	targets []target
	// leftover are the deployments on Clusters that the Bundle is not for, or not any more.
	leftover []*fleet.BundleDeployment
}

// makesSense says whether it is known which deployments there should be.
func (o observed) makesSense() bool { return o.problem == nil }

// packed is what became of the resources of a Bundle.
type packed struct {
	name, sum string
	problem   error
}

// exists says whether there is a deployment, if only on its way.
func (t target) exists() bool { return t.deployment != nil || t.settling }

// current says whether the deployment was told of what the Bundle wants.
func (t target) current() bool {
	if t.settling {
		return t.written == t.want.Spec.DeploymentID
	}
	return t.deployment != nil && t.deployment.Spec.DeploymentID == t.want.Spec.DeploymentID
}

// edited says whether somebody else changed what the agent is told. It is set right without regard to the rollout: the agent has it already.
func (t target) edited() bool {
	return t.deployment != nil && !t.settling && t.problem == nil && t.current() && t.deployment.Annotations[cachedDigest] != t.digest
}

// available says whether what was told last is in place and ready.
func (t target) available() bool {
	if t.deployment == nil || t.settling && t.written != t.deployment.Spec.DeploymentID {
		return false
	}
	return rollup.Available(t.deployment)
}

// held says whether something other than the rollout keeps the deployment as it is.
func (t target) held() bool { return t.problem != nil || t.want.Spec.Paused }

// decide plans the rollout.
func decide(o observed) plan {
	candidates := make([]candidate, len(o.targets))
	for i, t := range o.targets {
		candidates[i] = candidate{
			partition: t.partition, held: t.held(), exists: t.exists(), current: t.problem == nil && t.current(), available: t.available(), busy: t.settling,
		}
	}
	return rollout(o.bundle.Spec.RolloutStrategy, candidates)
}

// needsWrite says whether a deployment that is there has to be changed, released or not.
func (t target) needsWrite(released bool) bool {
	if t.problem != nil || t.settling {
		return false
	}
	if t.deployment == nil {
		return released
	}
	have, want := t.deployment, t.want
	return released || t.valuesLost && t.current() || t.edited() ||
		have.Spec.StagedDeploymentID != want.Spec.StagedDeploymentID || have.Spec.Paused != want.Spec.Paused ||
		!equality.Semantic.DeepEqual(have.Spec.DependsOn, want.Spec.DependsOn) || !equality.Semantic.DeepEqual(have.Labels, want.Labels)
}

// entry says for the summary how a target stands, once the plan is carried out.
func (t target) entry(workspace string, released bool) rollup.Entry {
	e := rollup.Entry{Name: t.cluster.Name, Deployment: t.deployment}
	if t.cluster.Namespace != workspace {
		e.Name = t.cluster.Namespace + "/" + t.cluster.Name
	}
	switch {
	case t.failure != nil:
		e.State, e.Message = fleet.StateOutOfSync, t.failure.Error()
	case t.problem != nil:
		e.State, e.Message = fleet.StateErrApplied, t.problem.Error()
	case released || t.settling && t.current():
		e.State, e.Message = fleet.StateWaitApplied, "the agent has not reported it yet"
	case !t.current() && t.want.Spec.Paused:
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
	ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady)
	if ready != nil && (ready.Reason == "AgentLost" || ready.Reason == "WaitCheckIn" || ready.Reason == "IdentityMissing") {
		return ready.Message
	}
	return ""
}

// taken says that another Bundle's deployment has the name.
func taken(d *fleet.BundleDeployment) error {
	return fmt.Errorf("the Bundle %s/%s of the same name is on this Cluster: rename one of the two", d.Labels[fleet.LabelBundleNamespace], d.Name)
}
