package lifecycle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// Reasons of the condition Supported.
const (
	reasonLeavePolicyInvalid = "LeavePolicyInvalid"
	reasonReportTooLarge     = "ReportTooLarge"
)

// Conditions are Supported, Pruned and HubConfigured, which both kinds of record have. A record does not show a condition that has no reason.
func (o Observed) Conditions() []metav1.Condition {
	supported := metav1.Condition{Type: clusterv1beta1.ConditionSupported, Status: metav1.ConditionFalse}
	if oversized := membernamespace.Oversized(o.Report); o.PolicyProblem != "" {
		supported.Reason, supported.Message = reasonLeavePolicyInvalid, o.PolicyProblem
	} else if oversized != "" {
		supported.Reason, supported.Message = reasonReportTooLarge, oversized
	}
	pruned := metav1.Condition{Type: clusterv1beta1.ConditionPruned, Status: metav1.ConditionFalse}
	pruned.Reason, pruned.Message = NotPruned(o.Report)
	return []metav1.Condition{supported, pruned, o.Address().Condition()}
}

// maxPruned bounds the message of an agent about releases that it could not remove.
const maxPruned = 400

// NotPruned returns why releases whose BundleDeployments are gone are still on a member, in the words of its agent, or two empty texts. The hub
// chooses the reason, not the member.
func NotPruned(report *clusterv1beta1.InternalMemberCluster) (reason, message string) {
	said := membership.AgentCondition(report, clusterv1beta1.ConditionPruned)
	if said == nil || said.Status != metav1.ConditionFalse {
		return "", ""
	}
	reason, message = clusterv1beta1.ReasonRemovalBlocked, said.Message
	if said.Reason == clusterv1beta1.ReasonRemovalUnconfirmed {
		reason = clusterv1beta1.ReasonRemovalUnconfirmed
	}
	return reason, kube.Clip(message, maxPruned)
}
