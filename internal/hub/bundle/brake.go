package bundle

import (
	"fmt"
	"slices"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/removal"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// maxLosers is how many of the Clusters that would lose a Bundle a message names.
const maxLosers = 10

// brake is why many deployments that no target is for any more are not deleted before somebody confirms: the Bundle itself has not changed,
// so that one change of a ClusterGroup, of labels or of a mapping would take it from a part of the fleet. "" if they may go.
func (o observed) brake() string {
	before := kube.FindCondition(o.bundle.Status.Conditions, fleet.ConditionProcessed)
	held := before != nil && before.Reason == removal.ReasonHeld // an edit of something else confirms nothing
	changed := o.bundle.Status.ObservedGeneration != o.bundle.Generation
	lose, have := len(o.leftover), len(o.leftover)+len(o.targets)
	if changed && !held || !removal.Many(lose, have) {
		return ""
	}
	var names []string
	for _, one := range o.leftover {
		names = append(names, one.deployment.Namespace+" "+string(one.deployment.UID))
	}
	slices.Sort(names)
	token := naming.Digest([]byte(strings.Join(names, "\n")))[:8]
	if o.bundle.Annotations[fleet.AnnotationConfirmRemoval] == token {
		return ""
	}
	return fmt.Sprintf("%d of the %d Clusters that have it would lose it, although the Bundle has not changed: %s; a ClusterGroup, labels or "+
		"a BundleNamespaceMapping have changed; what is deployed stays as it is; to have it removed there, kubectl annotate --overwrite -n %s "+
		"bundle.fleet.cattle.io %s %s=%s", lose, have, o.losers(), o.bundle.Namespace, o.bundle.Name, fleet.AnnotationConfirmRemoval, token)
}

// losers names the first of the Clusters that would lose the Bundle.
func (o observed) losers() string {
	var names []string
	for _, one := range o.leftover {
		labels := one.deployment.Labels
		names = append(names, nameFrom(o.bundle.Namespace, labels[fleet.LabelClusterNamespace], labels[fleet.LabelCluster]))
	}
	slices.Sort(names)
	return kube.JoinNames(names[:min(maxLosers, len(names))], len(names))
}

// nameFrom is the name of a Cluster for readers of a workspace.
func nameFrom(workspace, namespace, name string) string {
	if namespace == workspace {
		return name
	}
	return namespace + "/" + name
}
