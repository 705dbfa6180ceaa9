package membership

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// KeepsUnknown reports whether a member has deliveries that the restored hub does not know.
func KeepsUnknown(member client.Object) bool {
	switch o := member.(type) {
	case *fleet.Cluster:
		is := kube.FindCondition(o.Status.Conditions, clusterv1beta1.ConditionPruned)
		return is != nil && is.Reason == reasons.HubRestored
	case *clusterv1beta1.MemberCluster:
		is := meta.FindStatusCondition(o.Status.Conditions, clusterv1beta1.ConditionPruned)
		return is != nil && is.Reason == reasons.HubRestored
	}
	return false
}
