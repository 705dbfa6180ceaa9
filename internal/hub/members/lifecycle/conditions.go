package lifecycle

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// Conditions returns Supported, Pruned, HubConfigured and Quarantined, common to Clusters and
// MemberClusters. A membership object does not show a condition without a reason.
func (o Observed) Conditions() []metav1.Condition {
	supported := metav1.Condition{Type: clusterv1beta1.ConditionSupported, Status: metav1.ConditionFalse}
	if oversized := membernamespace.Oversized(o.Report); o.PolicyProblem != "" {
		supported.Reason, supported.Message = reasons.LeavePolicyInvalid, o.PolicyProblem
	} else if oversized != "" {
		supported.Reason, supported.Message = reasons.ReportTooLarge, oversized
	}
	pruned := metav1.Condition{Type: clusterv1beta1.ConditionPruned, Status: metav1.ConditionFalse}
	pruned.Reason, pruned.Message = NotPruned(o.Report)
	return []metav1.Condition{supported, pruned, o.Address().Condition(), o.quarantined()}
}

// maxPruned bounds an agent's message about releases it could not remove.
const maxPruned = 400

// NotPruned returns a reason, and the agent's message, for deliveries on a member that the hub has
// deleted or does not know. Both are empty if there are none. The hub chooses the reason, not the
// member.
func NotPruned(report *clusterv1beta1.InternalMemberCluster) (reason, message string) {
	said := membership.AgentCondition(report, clusterv1beta1.ConditionPruned)
	if said == nil || said.Status != metav1.ConditionFalse {
		return "", ""
	}
	reason, message = clusterv1beta1.ReasonRemovalBlocked, said.Message
	if said.Reason == reasons.RemovalUnconfirmed || said.Reason == reasons.HubRestored {
		reason = said.Reason
	}
	return reason, kube.Clip(message, maxPruned)
}

// WriteStatus writes the differences in the status of a membership object, together with the
// conditions offered by another controller. Those alone are no difference.
func (c *Controller) WriteStatus(ctx context.Context, before, after client.Object) error {
	if err := c.endQuarantine(ctx, before, after); err != nil {
		return err
	}
	if add := c.Offers.Accept(after, c.Clock.Now()); add != nil && !equality.Semantic.DeepEqual(before, after) {
		add(after)
	}
	if err := kube.PatchStatus(ctx, c.Client, before, after); err != nil {
		return err
	}
	if after.GetResourceVersion() != before.GetResourceVersion() {
		c.expected.Expect(client.ObjectKeyFromObject(after), after)
	}
	return c.writeQuarantine(ctx, before, after)
}
