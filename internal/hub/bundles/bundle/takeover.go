package bundle

import (
	"fmt"
	"slices"
	"strings"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// takeover returns the changes and removals by this hub to a Bundle from another hub with other
// rules. It returns "" if nothing needs a confirmation. Until a user confirms the take-over, or
// changes the Bundle, everything stays. This applies only to the first observation of the Bundle,
// and only if another hub has made the first deployment.
func (o observed) takeover() string {
	before := kube.FindCondition(o.bundle.Status.Conditions, fleet.ConditionProcessed)
	processed := before != nil && (before.Reason != reasons.TakeoverHeld || o.bundle.Status.ObservedGeneration != o.bundle.Generation)
	if o.ours || processed || !o.valid() ||
		o.bundle.Labels[fleet.LabelAgent] != "" { // agents are replaced in their own rollout
		return ""
	}
	changed, token := o.takes()
	if token == "" || o.bundle.Annotations[fleet.AnnotationConfirmRemoval] == token {
		return ""
	}
	var gone, would []string
	for _, one := range o.leftover {
		labels := one.deployment.Labels
		gone = append(gone, nameFrom(o.bundle.Namespace, labels[fleet.LabelClusterNamespace], labels[fleet.LabelCluster]))
	}
	for what, names := range map[string][]string{"get another version": changed, "lose it": gone} {
		if slices.Sort(names); len(names) > 0 {
			would = append(would, fmt.Sprintf("%d would %s: %s", len(names), what, kube.JoinNames(names[:min(maxLosers, len(names))], len(names))))
		}
	}
	slices.Sort(would)
	return fmt.Sprintf("another hub deployed it, and with the rules of this hub, of the Clusters with the Bundle, %s; deployed objects stay "+
		"as they are; to confirm the change, muster confirm bundles %s/%s, or kubectl annotate --overwrite -n %s bundle.fleet.cattle.io %s "+
		"%s=%s",
		strings.Join(would, "; "), o.bundle.Namespace, o.bundle.Name, o.bundle.Namespace, o.bundle.Name, fleet.AnnotationConfirmRemoval, token)
}

// takes returns the Clusters changed by a take-over, and the value to confirm it; "" if it changes
// and removes nothing.
func (o observed) takes() (changed []string, token string) {
	var affected []string
	for _, t := range o.targets {
		if t.changes() {
			changed = append(changed, nameFrom(o.bundle.Namespace, t.cluster.Namespace, t.cluster.Name))
			affected = append(affected, string(t.deployment.UID)+" "+t.desired.Spec.DeploymentID)
		}
	}
	for _, one := range o.leftover {
		affected = append(affected, string(one.deployment.UID))
	}
	if len(affected) == 0 {
		return nil, ""
	}
	slices.Sort(affected)
	return changed, naming.Digest(strings.Join(affected, "\n"))[:8]
}

// changes reports whether a target would get another version than its current one.
func (t target) changes() bool {
	return t.problem == nil && t.deployment != nil && t.deployment.Spec.DeploymentID != "" && !t.current()
}
