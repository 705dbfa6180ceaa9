package cluster

import (
	"fmt"
	"time"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// observeRival determines whether an agent waits for the active agent.
func (c *Controller) observeRival(o *observed) {
	recorded := ""
	if said := kube.FindCondition(o.before.Conditions, fleet.ConditionCloned); said != nil && said.Reason == reasons.AgentWaiting {
		recorded = said.Message
	}
	remedy := fmt.Sprintf("stop the one that does not belong here and delete its Secrets %s and %s; if you do not know which agent "+
		"that is, revoke this Cluster, which ends both, and register the right cluster again: kubectl -n %s annotate cluster.fleet.cattle.io %s "+
		"%s=true",
		naming.AgentSecret, naming.AgentKeySecret, o.Workspace, o.Name, clusterv1beta1.AnnotationRevoked)
	o.rival = o.Rival(recorded, remedy, c.renewer.Began(), c.Clock.Now())
}

// describeRival writes whether two agents have the credential of the Cluster.
func describeRival(after *fleet.ClusterStatus, o observed, now time.Time) {
	if o.rival.Message == "" {
		after.Conditions = kube.RemoveCondition(after.Conditions, fleet.ConditionCloned)
		return
	}
	after.Conditions = kube.SetCondition(after.Conditions, now,
		kube.Condition(fleet.ConditionCloned, true, reasons.AgentWaiting, o.rival.Message))
}

// dropRival removes the condition of a Cluster without an identity, because no agents can share
// one.
func dropRival(after *fleet.ClusterStatus) {
	if kube.ReasonOf(after.Conditions, fleet.ConditionCloned) == reasons.AgentWaiting {
		after.Conditions = kube.RemoveCondition(after.Conditions, fleet.ConditionCloned)
	}
}
