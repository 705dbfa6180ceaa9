package membercluster

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxMessage bounds the message of a condition, in bytes: the definition of MemberCluster permits 2048 characters, with the
// dots that stand for the rest of a longer one.
const maxMessage = 2045

// reportedTypes are the types of the conditions that agents report in the status of an InternalMemberCluster: of
// Muster's agent the first, of KubeFleet's all. A MemberCluster shows no other type that its member reports.
var reportedTypes = []string{
	clusterv1beta1.ConditionNamespacesCollected,
	"ClusterPropertyProviderStarted", "ClusterPropertyCollectionSucceeded", "AKSClusterCostPropertiesCollectionSucceeded",
}

// hubTypes are the types of the conditions that only the hub writes.
var hubTypes = []string{
	clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined, clusterv1beta1.ConditionHealthy,
	clusterv1beta1.ConditionLeftoversRemoved, clusterv1beta1.ConditionCredentialExchanged, clusterv1beta1.ConditionCloned,
	clusterv1beta1.ConditionSupported, clusterv1beta1.ConditionPruned, clusterv1beta1.ConditionHubConfigured,
}

// rollUpConditions copies the conditions that the agent may report, and removes those that it does not report any more.
func rollUpConditions(after *clusterv1beta1.MemberClusterStatus, report []metav1.Condition, generation int64) {
	for _, kind := range reportedTypes {
		said := meta.FindStatusCondition(report, kind)
		if said == nil {
			meta.RemoveStatusCondition(&after.Conditions, kind)
			continue
		}
		condition := *said
		condition.ObservedGeneration, condition.Message = generation, kube.Clip(condition.Message, maxMessage)
		meta.SetStatusCondition(&after.Conditions, condition)
	}
}

// known returns the conditions whose types are the hub's or an agent's. A hub of an earlier version copied each type that a member reported.
func known(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool {
		return !slices.Contains(hubTypes, c.Type) && !slices.Contains(reportedTypes, c.Type) || len(c.Message) > maxMessage+len("...")
	})
}

// dropUnknown removes other conditions from a MemberCluster before anything else is written to it. The API server
// refuses each write that makes a full object larger, so that a member that filled its MemberCluster could not be
// revoked or deleted.
func (c *Controller) dropUnknown(ctx context.Context, mc *clusterv1beta1.MemberCluster) (*clusterv1beta1.MemberCluster, error) {
	kept := known(mc.Status.Conditions)
	if len(kept) == len(mc.Status.Conditions) {
		return mc, nil
	}
	after := mc.DeepCopy()
	after.Status.Conditions = kept
	if err := c.WriteStatus(ctx, mc, after); err != nil {
		return nil, err
	}
	ctrl.LoggerFrom(ctx).Info("Removed conditions that neither the hub nor an agent writes", "conditions", len(mc.Status.Conditions)-len(kept))
	return after, nil
}
