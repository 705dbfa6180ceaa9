package membercluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

// failed reports whether an agent reports an unhealthy API server.
func failed(healthy *metav1.Condition) bool {
	return healthy != nil && healthy.Status == metav1.ConditionFalse
}

// healthOf returns the health of a member with KubeFleet's agent; nil if each result counts. After
// a start of the hub, the shown health stays until enough results differ from it.
func (c *Controller) healthOf(mc *clusterv1beta1.MemberCluster) *membership.Streak {
	if c.Config.Current().HealthCheck.Thresholds() == nil {
		return nil
	}
	shown := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionHealthy)
	streak := c.health.Of(membernamespace.OfMemberCluster(mc).Namespace,
		membership.Streak{Unhealthy: shown != nil && shown.Reason == reasons.AgentUnhealthy})
	return &streak
}

// countHealth counts the result in a new report of KubeFleet's agent. Each heartbeat of this agent
// is a report. It reports whether the health changes.
func (c *Controller) countHealth(mc *clusterv1beta1.MemberCluster, report *clusterv1beta1.InternalMemberCluster) bool {
	before := c.healthOf(mc)
	if before == nil {
		c.health.Forget(report.Namespace)
		return false
	}
	result := failed(membership.AgentCondition(report, clusterv1beta1.ConditionHealthy))
	after := before.Add(result, c.Config.Current().HealthCheck.Thresholds())
	c.health.Set(report.Namespace, after)
	return after.Unhealthy != before.Unhealthy
}
