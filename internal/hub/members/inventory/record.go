package inventory

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
)

// record holds the data of a Cluster or a MemberCluster for its profile.
type record struct {
	object client.Object
	// reconciled reports whether the controller of the membership object has observed the member.
	reconciled      bool
	joined, healthy metav1.Condition
	// version is the version of Kubernetes in the membership object.
	version string
}

func ofMemberCluster(mc *clusterv1beta1.MemberCluster) *record {
	return newRecord(mc, membership.MemberClusterStatus(&mc.Status), "")
}

func ofCluster(cluster *fleet.Cluster, report *clusterv1beta1.InternalMemberCluster) *record {
	return newRecord(cluster, membership.ClusterStatus(&cluster.Status, report), cluster.Status.Agent.KubernetesVersion)
}

func newRecord(object client.Object, status membership.Status, version string) *record {
	return &record{
		object: object, reconciled: status.Agent != membership.AgentUnknown, joined: status.Joined, healthy: status.Healthy, version: version,
	}
}
