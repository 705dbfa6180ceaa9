package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

func TestTheDeploymentOfANewAgentCountsOnceItHasAnOutcome(t *testing.T) {
	agents := map[string]string{fleet.LabelAgent: "1"}
	pending := fleet.BundleDeploymentStatus{}
	failed := fleet.BundleDeploymentStatus{Conditions: []fleet.Condition{
		{Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: "no room"},
	}}
	reported := []fleet.Condition{kube.Condition(fleet.ConditionAgentUpToDate, true, "UpToDate", "")}
	for name, c := range map[string]struct {
		labels map[string]string
		status fleet.BundleDeploymentStatus
		age    time.Duration
		before []fleet.Condition
		counts bool
	}{
		"on its way":                             {agents, pending, time.Second, nil, false},
		"on its way, to an agent of a while ago": {agents, pending, controller.Adoption, nil, true},
		"on its way, by another clock":           {agents, pending, -time.Second, nil, true},
		"on its way as an update":                {agents, pending, time.Second, reported, true},
		"failed":                                 {agents, failed, time.Second, nil, true},
		"on its way, and not the agent's own":    {nil, pending, time.Second, nil, true},
	} {
		deployment := fleet.BundleDeployment{Status: c.status, ObjectMeta: metav1.ObjectMeta{
			Name: "d", Labels: c.labels, CreationTimestamp: metav1.NewTime(now.Add(-c.age)),
		}}
		deployment.Spec.DeploymentID = "id"
		o := member(func(o *observed) {
			o.deployments, o.before.Conditions = []fleet.BundleDeployment{deployment}, c.before
		})
		o.sumUp(now)
		if counts := o.bundles.DesiredReady == 1; counts != c.counts || o.installing.IsZero() != counts {
			t.Errorf("%s: counts %t, installing %t", name, counts, !o.installing.IsZero())
		}
		if wait := o.wait(now); !o.installing.IsZero() && (wait <= 0 || wait > controller.Adoption-c.age) {
			t.Errorf("%s: it waits for %s", name, wait)
		}
	}
}
