package membercluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
)

// TestTheHealthOfKubeFleetsAgentChangesAfterEnoughReports has a report that differs from the health
// that the results in a row have led to.
func TestTheHealthOfKubeFleetsAgentChangesAfterEnoughReports(t *testing.T) {
	says := func(status metav1.ConditionStatus) func(*observed) {
		return func(o *observed) {
			o.Report.Status.AgentStatus[0].Conditions[1] = metav1.Condition{Type: "Healthy", Status: status, Message: "etcd is away"}
		}
	}
	counts := func(unhealthy bool) func(*observed) {
		return func(o *observed) { o.health = &membership.Streak{Unhealthy: unhealthy} }
	}
	shown := func(o *observed) {
		o.before.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionHealthy, Message: "etcd was away"}}
	}
	for name, row := range map[string]struct {
		o               observed
		reason, message string
	}{
		"one failure counts": {joined(says(metav1.ConditionFalse)), reasons.AgentUnhealthy, "etcd is away"},
		"too few failures":   {joined(says(metav1.ConditionFalse), counts(false)), reasons.MemberClusterHealthy, ""},
		"enough failures":    {joined(says(metav1.ConditionFalse), counts(true)), reasons.AgentUnhealthy, "etcd is away"},
		"too few successes":  {joined(says(metav1.ConditionTrue), counts(true), shown), reasons.AgentUnhealthy, "etcd was away"},
		"enough successes":   {joined(says(metav1.ConditionTrue), counts(false), shown), reasons.MemberClusterHealthy, ""},
	} {
		got := healthyCondition(row.o)
		if got.reason != row.reason || row.message != "" && got.message != row.message {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
