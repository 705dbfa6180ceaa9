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

// waiting are the reasons of Muster's and Rancher Fleet's agents for a deployment waiting for
// another Bundle. Waiting is from earlier Muster agents.
var waiting = []string{string(fleet.StateWaitingForDependency), "Waiting"}

// underWay are the reasons for Deployed=False without a failure. Earlier Muster agents report them.
var underWay = append([]string{"Deploying", "Moving", "Removing", "Confirming", "Kept"}, waiting...)

// StateOf returns the state of a deployment on its cluster, from its agent's report about the
// deployment ID in the spec. It ignores `status.display`, because another agent may have written
// it.
func StateOf(d *fleet.BundleDeployment) fleet.BundleState {
	current := d.Spec.DeploymentID != "" && d.Status.AppliedDeploymentID == d.Spec.DeploymentID
	switch {
	case Failed(d):
		return fleet.StateErrApplied
	case !current && Waits(d):
		return fleet.StateWaitingForDependency
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

// Failed reports whether the agent could not apply the deployment ID in the spec. An applied but no
// longer installed release is no failure.
func Failed(d *fleet.BundleDeployment) bool {
	failed := isFalse(d, fleet.ConditionDeployed) ||
		d.Status.AppliedDeploymentID != d.Spec.DeploymentID && isFalse(d, fleet.ConditionInstalled)
	return failed && !OfEarlier(d)
}

// Waits reports whether the deployment, by its agent's report, waits for another Bundle.
func Waits(d *fleet.BundleDeployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c fleet.Condition) bool {
		return c.Status != corev1.ConditionTrue && slices.Contains(waiting, c.Reason)
	})
}

func isFalse(d *fleet.BundleDeployment, kind string) bool {
	c := condition(d, kind)
	return c != nil && c.Status == corev1.ConditionFalse && !slices.Contains(underWay, c.Reason)
}

func condition(d *fleet.BundleDeployment, kind string) *fleet.Condition {
	return kube.FindCondition(d.Status.Conditions, kind)
}

// Complaint returns the condition with the reason why a deployment ID is not applied; nil if there
// is none.
func Complaint(d *fleet.BundleDeployment) *fleet.Condition {
	for _, kind := range []string{fleet.ConditionDeployed, fleet.ConditionInstalled} {
		if c := condition(d, kind); c != nil && c.Status != corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// ErrorDigest returns the digest of the error in a status; empty if there is none. Agents do not
// report the deployment ID of an error.
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

// OfEarlier reports whether the error in a status is older than the hub's write of the deployment
// ID. Such an error is about an earlier one.
func OfEarlier(d *fleet.BundleDeployment) bool {
	noted := d.Annotations[fleet.AnnotationEarlierError]
	if noted == "" {
		return false
	}
	is, err := ErrorDigest(d)
	return err == nil && is == noted
}
