package delivery

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// underWay are the reasons with which earlier agents of Muster make Deployed False though the
// deployment has not failed.
var underWay = []string{"Deploying", "Moving", "Removing", "Confirming", "Kept"}

// StateOf is the state of a deployment on its cluster, by what its agent reported of the deployment
// ID in the spec. `status.display` does not count: another agent may have written it.
func StateOf(d *fleet.BundleDeployment) fleet.BundleState {
	current := d.Spec.DeploymentID != "" && d.Status.AppliedDeploymentID == d.Spec.DeploymentID
	switch {
	case Failed(d):
		return fleet.StateErrApplied
	case !current:
		return fleet.StateWaitApplied
	case isFalse(d, fleet.ConditionInstalled):
		return fleet.StateNotReady
	case !d.Status.NonModified:
		return fleet.StateModified
	case !d.Status.Ready:
		return fleet.StateNotReady
	}
	return fleet.StateReady
}

// Failed says whether the agent could not apply the deployment ID in the spec. That a release which
// was applied is no longer installed is no failure.
func Failed(d *fleet.BundleDeployment) bool {
	failed := isFalse(d, fleet.ConditionDeployed) ||
		d.Status.AppliedDeploymentID != d.Spec.DeploymentID && isFalse(d, fleet.ConditionInstalled)
	return failed && !OfEarlier(d)
}

func isFalse(d *fleet.BundleDeployment, kind string) bool {
	c := condition(d, kind)
	return c != nil && c.Status == corev1.ConditionFalse && !slices.Contains(underWay, c.Reason)
}

func condition(d *fleet.BundleDeployment, kind string) *fleet.Condition {
	return kube.FindCondition(d.Status.Conditions, kind)
}

// Complaint is the condition that says why a deployment ID is not applied; nil if there is none.
func Complaint(d *fleet.BundleDeployment) *fleet.Condition {
	for _, kind := range []string{fleet.ConditionDeployed, fleet.ConditionInstalled} {
		if c := condition(d, kind); c != nil && c.Status != corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// ErrorDigest is the digest of the error that a status has; empty if it has none. Agents do not say
// for which deployment ID they report an error.
func ErrorDigest(d *fleet.BundleDeployment) (string, error) {
	if !isFalse(d, fleet.ConditionDeployed) && !isFalse(d, fleet.ConditionInstalled) {
		return "", nil
	}
	text, err := json.Marshal([]*fleet.Condition{condition(d, fleet.ConditionDeployed), condition(d, fleet.ConditionInstalled)})
	if err != nil {
		return "", fmt.Errorf("encoding the conditions of BundleDeployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	return naming.Digest(text)[:32], nil
}

// OfEarlier says whether the error in a status was there already when the hub wrote the deployment
// ID, so that it is not about that.
func OfEarlier(d *fleet.BundleDeployment) bool {
	noted := d.Annotations[fleet.AnnotationEarlierError]
	if noted == "" {
		return false
	}
	is, err := ErrorDigest(d)
	return err == nil && is == noted
}

// Display is what the columns of a deployment show.
func Display(d *fleet.BundleDeployment, state fleet.BundleState) fleet.BundleDeploymentDisplay {
	return fleet.BundleDeploymentDisplay{
		Deployed: shown(condition(d, fleet.ConditionDeployed)), Monitored: shown(condition(d, fleet.ConditionMonitored)), State: string(state),
	}
}

func shown(c *fleet.Condition) string {
	switch {
	case c == nil:
		return ""
	case c.Message == "":
		return string(c.Status)
	default:
		return fmt.Sprintf("%s: %s", c.Status, c.Message)
	}
}
