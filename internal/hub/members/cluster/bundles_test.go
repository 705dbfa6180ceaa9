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

func TestTheAgentsOwnDeploymentCountsOnceItHasAnOutcome(t *testing.T) {
	agents := map[string]string{fleet.LabelAgent: "1"}
	pending := fleet.BundleDeploymentStatus{}
	failed := fleet.BundleDeploymentStatus{Conditions: []fleet.Condition{
		{Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: "no room"},
	}}
	condition := func(reason string, age time.Duration) []fleet.Condition {
		at := kube.Condition(fleet.ConditionAgentUpToDate, reason == "UpToDate", reason, "")
		return kube.SetCondition(nil, now.Add(-age), at)
	}
	whole, half := fleet.BundleSummary{Ready: 1, DesiredReady: 1}, fleet.BundleSummary{DesiredReady: 1}
	const absent, waiting, ready = "absent", "waiting", "ready"
	for name, c := range map[string]struct {
		labels  map[string]string
		status  fleet.BundleDeploymentStatus
		age     time.Duration
		before  []fleet.Condition
		summary fleet.BundleSummary
		want    string
	}{
		"on its way":                             {agents, pending, time.Second, nil, half, absent},
		"on its way, to an agent of a while ago": {agents, pending, controller.Adoption, nil, half, waiting},
		"on its way, by another clock":           {agents, pending, -time.Second, nil, half, waiting},
		"on its way before the condition":        {agents, pending, time.Hour, condition("UpToDate", time.Hour), whole, waiting},
		"on its way as an update":                {agents, pending, time.Hour, condition("Updating", time.Second), whole, ready},
		"as an update of a while ago":            {agents, pending, time.Hour, condition("Updating", controller.Adoption), whole, waiting},
		"as an update that waits":                {agents, pending, time.Hour, condition("WaitingForTurn", time.Second), whole, waiting},
		"as an update of a broken agent":         {agents, pending, time.Hour, condition("Updating", time.Second), half, waiting},
		"an update that failed":                  {agents, failed, time.Hour, condition("Updating", time.Second), whole, waiting},
		"failed":                                 {agents, failed, time.Second, nil, half, waiting},
		"on its way, and not the agent's own":    {nil, pending, time.Second, condition("Updating", time.Second), whole, waiting},
	} {
		deployment := fleet.BundleDeployment{Status: c.status, ObjectMeta: metav1.ObjectMeta{
			Name: "d", Labels: c.labels, CreationTimestamp: metav1.NewTime(now.Add(-c.age)),
		}}
		deployment.Spec.DeploymentID = "id"
		o := member(func(o *observed) {
			o.deployments, o.before.Conditions, o.before.Summary = []fleet.BundleDeployment{deployment}, c.before, c.summary
		})
		o.sumUp(now)
		got := waiting
		switch {
		case o.bundles.DesiredReady == 0:
			got = absent
		case o.bundles.Ready == 1:
			got = ready
		}
		if got != c.want || o.installing.IsZero() != (got == waiting) {
			t.Errorf("%s: it is %s, want %s; since %s", name, got, c.want, o.installing)
		}
		if wait := o.wait(now); !o.installing.IsZero() && (wait <= 0 || wait > controller.Adoption-time.Second) {
			t.Errorf("%s: it waits for %s", name, wait)
		}
	}
}
