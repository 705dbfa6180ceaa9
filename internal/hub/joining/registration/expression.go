package registration

import (
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/joining/expression"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
)

// observeExpression evaluates the expression of a token with approval CEL.
func (c *Controller) observeExpression(r *fleet.ClusterRegistration, o *observation) {
	if o.limits.approval != fleet.ApprovalCEL {
		return
	}
	rule, err := c.Expressions.Of(o.registrationToken)
	if err != nil {
		o.expressionProblem = err.Error()
		return
	}
	o.expressionTrue, o.expressionSays = rule.Approves(expression.Request{
		Labels: o.grantedLabels(), ClientID: r.Spec.ClientID, Key: o.key, Requester: o.requester, Native: o.native,
	})
}

// grantedLabels returns the labels of the Cluster after a grant of the request. Refused labels of
// the agent do not count, because an agent may request any label.
func (o observation) grantedLabels() map[string]string {
	if o.match != nil {
		return membernamespace.ReadLabelRecord(o.match).Restamp(o.match.Labels, o.stamps)
	}
	labels := membernamespace.LabelRecord{}.Restamp(o.labels, o.stamps)
	labels[fleet.LabelCluster] = o.newName
	return labels
}
