package membercluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// passed reports whether the condition named by a taint is True. The member cannot write such
// conditions: a report has none of the hub's types, and no type with a domain.
func passed(mc *clusterv1beta1.MemberCluster, taint clusterv1beta1.Taint) bool {
	return taint.Value == clusterv1beta1.TaintUntilTrue && !slices.Contains(reportedTypes, taint.Key) &&
		meta.IsStatusConditionTrue(mc.Status.Conditions, taint.Key)
}

// removeTaints removes the taints with a True condition, and reports whether there were any. The
// event of the write enqueues the MemberCluster again.
func (c *Controller) removeTaints(ctx context.Context, mc *clusterv1beta1.MemberCluster) (removed bool, err error) {
	if mc.DeletionTimestamp != nil || !slices.ContainsFunc(mc.Spec.Taints, func(t clusterv1beta1.Taint) bool { return passed(mc, t) }) {
		return false, nil
	}
	after := mc.DeepCopy()
	var keys []string
	after.Spec.Taints = slices.DeleteFunc(after.Spec.Taints, func(t clusterv1beta1.Taint) bool {
		if passed(mc, t) {
			keys = append(keys, t.Key)
			return true
		}
		return false
	})
	if err := c.Client.Patch(ctx, after, client.MergeFromWithOptions(mc, client.MergeFromWithOptimisticLock{}), kube.FieldOwner); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("removing taints of MemberCluster %s: %w", mc.Name, err))
	}
	ctrl.LoggerFrom(ctx).Info("Taints removed, because their conditions are True", "taints", keys)
	for _, key := range keys {
		c.Recorder.Eventf(after, nil, corev1.EventTypeNormal, reasons.TaintRemoved, "RemoveTaint",
			"the hub removed the taint %s: the condition is True", key)
	}
	return true, nil
}
