package lifecycle

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// uninstall reports whether a leaving member's agent removes itself. If a user requires it and the
// agent cannot, stays is the cause, as the predicate of a sentence about the agent.
func (o Observed) uninstall(record client.Object) (removesItself bool, stays string) {
	switch {
	case record.GetAnnotations()[clusterv1beta1.AnnotationUninstallAgent] != "true", o.Foreign:
		return false, ""
	case o.Quarantined:
		return false, "may remove nothing while the member is quarantined"
	case removedAsLost(record):
		return false, "has sent no heartbeat for so long that the hub removes the member without it"
	case o.Report == nil:
		return false, "has no report and gets no request of the hub"
	case !slices.Contains(o.Report.Status.Features, clusterv1beta1.FeatureUninstall):
		return false, "cannot remove itself: it is another project's, of an earlier version, outside its cluster, or installed without delivery"
	}
	return true, ""
}

// agentStays returns the message about an agent, or a part of it, that stays although a user
// required its removal; "" if there is none.
func (o Observed) agentStays() string {
	if o.AgentStays == "" {
		if o.Uninstall && slices.Contains(o.Report.Status.Features, clusterv1beta1.FeatureHosted) {
			return "The agent ran outside the cluster, and removes only its objects on the cluster. Its Deployment stays on its host: remove " +
				"it there with helm uninstall, together with the Secret of the member's kubeconfig"
		}
		return ""
	}
	return fmt.Sprintf("The agent stays on the cluster, because it %s. Remove it with helm uninstall, then run muster doctor --leftovers "+
		"there", o.AgentStays)
}
