package membership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxPruned bounds what is shown of what an agent says of releases that it could not remove.
const maxPruned = 400

// NotPruned returns why releases whose BundleDeployments are gone are still on a member, as its agent says, or two empty texts. A member does
// not choose the reason.
func NotPruned(report *clusterv1beta1.InternalMemberCluster) (reason, message string) {
	said := AgentCondition(report, clusterv1beta1.ConditionPruned)
	if said == nil || said.Status != metav1.ConditionFalse {
		return "", ""
	}
	reason, message = clusterv1beta1.ReasonRemovalBlocked, said.Message
	if said.Reason == clusterv1beta1.ReasonRemovalUnconfirmed {
		reason = clusterv1beta1.ReasonRemovalUnconfirmed
	}
	return reason, kube.Clip(message, maxPruned)
}
