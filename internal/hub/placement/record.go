package placement

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/liveness"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
	"github.com/muster-fleet/muster/internal/hub/rollup"
	"github.com/muster-fleet/muster/internal/kube"
)

// LabelOptIn on a workspace, with the value true, lets placements pick its Clusters.
const LabelOptIn = "muster/placement"

// optedIn asks for the workspaces with that label. It is used as if by a placement without a name.
var optedIn = selection.Query{Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Labels: LabelOptIn + "=true"}

// Reasons of obstacles.
const (
	reasonLeaving   = "Leaving"
	reasonNotJoined = "NotJoined"
	reasonLost      = "AgentLost" // as both doors call it, too
	reasonUnhealthy = "Unhealthy"
	reasonOldAgent  = "AgentCannotPlace"
)

// idle says whether nobody is there who would act on Works.
func idle(m *scheduling.Member) bool {
	return m.Obstacle.Reason == reasonLost || m.Obstacle.Reason == reasonNotJoined
}

// ofMemberCluster is the member behind a MemberCluster. The door has put into its conditions what liveness judges.
func ofMemberCluster(mc *clusterv1beta1.MemberCluster, state liveness.State) *scheduling.Member {
	m := &scheduling.Member{
		Name: mc.Name, Namespace: membership.OfMemberCluster(mc).Namespace, Labels: mc.Labels, Taints: mc.Spec.Taints,
		Properties: mc.Status.Properties, Usage: mc.Status.ResourceUsage, Leaving: mc.DeletionTimestamp != nil,
	}
	joined := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionJoined)
	healthy := meta.FindStatusCondition(mc.Status.Conditions, clusterv1beta1.ConditionHealthy)
	switch {
	case m.Leaving:
		m.Obstacle = scheduling.Obstacle{Reason: reasonLeaving, Message: "the member is leaving the fleet"}
	case joined == nil || joined.Status != metav1.ConditionTrue:
		m.Obstacle = scheduling.Obstacle{Reason: reasonNotJoined, Message: "the member has not joined: no member agent has answered"}
	case state == liveness.Lost:
		m.Obstacle = scheduling.Obstacle{Reason: reasonLost, Message: "the member is lost: its agent sends no heartbeats"}
	case healthy == nil:
		m.Obstacle = scheduling.Obstacle{Reason: reasonUnhealthy, Message: "nothing is known of the member's health yet"}
	case healthy.Status != metav1.ConditionTrue:
		m.Obstacle = scheduling.Obstacle{Reason: healthy.Reason, Message: "the member is not healthy: " + healthy.Message}
	}
	return m
}

// ofCluster is the member behind a Cluster; report is nil if its agent does not write one.
func ofCluster(cluster *fleet.Cluster, report *clusterv1beta1.InternalMemberCluster, state liveness.State) *scheduling.Member {
	m := &scheduling.Member{
		Name: cluster.Namespace + "/" + cluster.Name, Namespace: cluster.Status.Namespace, Labels: cluster.Labels, Leaving: cluster.DeletionTimestamp != nil,
	}
	if report != nil {
		m.Properties, m.Usage = report.Status.Properties, report.Status.ResourceUsage
	}
	ready := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionReady)
	switch {
	case m.Leaving:
		m.Obstacle = scheduling.Obstacle{Reason: reasonLeaving, Message: "the Cluster is being deleted"}
	case state == liveness.Lost:
		m.Obstacle = scheduling.Obstacle{Reason: reasonLost, Message: "the Cluster is lost: its agent sends no heartbeats"}
	case ready == nil || cluster.Status.Namespace == "" || cluster.Status.Agent.LastSeen.IsZero():
		m.Obstacle = scheduling.Obstacle{Reason: reasonNotJoined, Message: "no agent of the Cluster has registered"}
	case report == nil:
		m.Obstacle = scheduling.Obstacle{Reason: reasonOldAgent, Message: "the agent of the Cluster is Rancher Fleet's, which does not apply Works"}
	case ready.Status != "True" && ready.Reason != string(rollup.Worst(cluster.Status.Summary)): // Bundles that are not ready do not stand in the way
		m.Obstacle = scheduling.Obstacle{Reason: ready.Reason, Message: "the Cluster is not ready: " + ready.Message}
	}
	return m
}

// members gathers everybody that a placement may pick. What is in them belongs to the cache and is only read.
func (c *Controller) members(ctx context.Context) ([]*scheduling.Member, error) {
	var list clusterv1beta1.MemberClusterList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	members := make([]*scheduling.Member, 0, len(list.Items))
	for i := range list.Items {
		members = append(members, c.ofMemberCluster(&list.Items[i]))
	}
	workspaces, _, _ := c.selector.Watches.Answer(optedIn) // the hub may always read namespaces; what it has not read yet wakes everybody
	for _, workspace := range workspaces {
		var clusters fleet.ClusterList
		if err := c.Client.List(ctx, &clusters, client.InNamespace(workspace.GetName()), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing Clusters of %s: %w", workspace.GetName(), err)
		}
		for i := range clusters.Items {
			m, err := c.ofCluster(ctx, &clusters.Items[i])
			if err != nil {
				return nil, err
			}
			members = append(members, m)
		}
	}
	return members, nil
}

func (c *Controller) ofMemberCluster(mc *clusterv1beta1.MemberCluster) *scheduling.Member {
	state, _ := c.Judge.State(membership.OfMemberCluster(mc).Namespace)
	return ofMemberCluster(mc, state)
}

func (c *Controller) ofCluster(ctx context.Context, cluster *fleet.Cluster) (*scheduling.Member, error) {
	state, _ := c.Judge.State(cluster.Status.Namespace)
	var report clusterv1beta1.InternalMemberCluster
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: cluster.Status.Namespace, Name: cluster.Name}, &report)
	if apierrors.IsNotFound(err) {
		return ofCluster(cluster, nil, state), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading InternalMemberCluster %s/%s: %w", cluster.Status.Namespace, cluster.Name, err)
	}
	return ofCluster(cluster, &report, state), nil
}
