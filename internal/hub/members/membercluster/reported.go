package membercluster

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxMessage bounds the message of a condition, in bytes. The definition of MemberCluster permits
// 2048 characters, including the dots at the end of a shortened message.
const maxMessage = 2045

// reportedTypes lists the condition types in an agent's report: the first from Muster's agent, all
// from KubeFleet's. A MemberCluster shows no other reported type.
var reportedTypes = []string{
	clusterv1beta1.ConditionNamespacesCollected,
	"ClusterPropertyProviderStarted", "ClusterPropertyCollectionSucceeded", "AKSClusterCostPropertiesCollectionSucceeded",
}

// hubTypes lists the condition types written by the hub only.
var hubTypes = []string{
	clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined, clusterv1beta1.ConditionHealthy,
	clusterv1beta1.ConditionLeftoversRemoved, clusterv1beta1.ConditionCredentialExchanged, clusterv1beta1.ConditionCloned,
	clusterv1beta1.ConditionSupported, clusterv1beta1.ConditionPruned, clusterv1beta1.ConditionHubConfigured,
	clusterv1beta1.ConditionAgentUpToDate, clusterv1beta1.ConditionQuarantined,
}

// rollUpConditions copies the permitted conditions of the agent, and removes those no longer
// reported.
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

// maxOwn limits the conditions added by users to a MemberCluster.
const maxOwn = 16

// known returns the conditions with a type of the hub's or an agent's. It also returns the first
// maxOwn conditions of users, with a domain in their type. A hub of an earlier version copied every
// reported type.
func known(conditions []metav1.Condition) []metav1.Condition {
	own := 0
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool {
		if len(c.Message) > maxMessage+len("...") {
			return true
		}
		if strings.Contains(c.Type, "/") {
			own++
			return own > maxOwn
		}
		return !slices.Contains(hubTypes, c.Type) && !slices.Contains(reportedTypes, c.Type)
	})
}

// dropUnknown removes other conditions from a MemberCluster before any other write. The API server
// refuses each write to a full object if the object grows. A member with a full MemberCluster could
// otherwise not be revoked or deleted.
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
	ctrl.LoggerFrom(ctx).Info("Removed conditions that neither the hub nor an agent writes, and that have no domain in their type",
		"conditions", len(mc.Status.Conditions)-len(kept))
	return after, nil
}
