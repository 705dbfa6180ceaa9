package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/hub/placement/selection"
)

// LabelOptIn on a workspace, with the value true, lets placements pick its Clusters.
const LabelOptIn = "muster/placement"

// optedIn is the query for the workspaces with this label. Its user is a placement without a name.
var optedIn = selection.Query{Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Labels: LabelOptIn + "=true"}

// errNotListed reports a watch without a complete list so far.
var errNotListed = errors.New("the API server has not answered yet")

// unreachable reports whether no agent of the member would act on Works.
func unreachable(m *scheduling.Member) bool {
	return m.Obstacle.Reason == reasons.AgentLost || m.Obstacle.Reason == reasons.NotJoined
}

// silent reports whether the agent of a member sends no heartbeats. Until the hub itself has
// observed the agent, it keeps the recorded state.
func silent(seen liveness.Observation, recorded membership.AgentState) bool {
	return seen.State == liveness.Lost || seen.State == liveness.Unknown && recorded == membership.AgentLost
}

// ofMemberCluster returns the member of a MemberCluster. The conditions show its health.
func ofMemberCluster(mc *clusterv1beta1.MemberCluster, seen liveness.Observation) *scheduling.Member {
	m := &scheduling.Member{
		Name: mc.Name, Namespace: membernamespace.OfMemberCluster(mc).Namespace, Epoch: membership.Epoch(mc),
		Labels: mc.Labels, Taints: membership.Taints(mc), Cordoned: membership.Cordoned(mc),
		Paused:      membership.Paused(mc) || membership.Quarantined(mc),
		Quarantined: membership.Quarantined(mc),
		Properties:  mc.Status.Properties, Usage: mc.Status.ResourceUsage, Leaving: mc.DeletionTimestamp != nil || membership.Revoked(mc),
		AdmittedNamespaces: admittedNamespaces(scheduling.AnyNamespace, mc),
		Namespaces:         mc.Status.Namespaces,
		MoreNamespaces:     meta.IsStatusConditionFalse(mc.Status.Conditions, clusterv1beta1.ConditionNamespacesCollected),
	}
	status := membership.MemberClusterStatus(&mc.Status)
	m.Lost = silent(seen, status.Agent)
	switch {
	case membership.Revoked(mc):
		m.Obstacle = scheduling.Obstacle{Reason: reasons.Revoked, Message: "the member is revoked"}
	case m.Leaving:
		m.Obstacle = scheduling.Obstacle{Reason: reasons.Leaving, Message: "the member is leaving the fleet"}
	case status.Joined.Status != metav1.ConditionTrue:
		m.Obstacle = scheduling.Obstacle{Reason: reasons.NotJoined, Message: "the member has not joined: no member agent has answered"}
	case m.Lost:
		m.Obstacle = scheduling.Obstacle{Reason: reasons.AgentLost, Message: "the member is lost: its agent sends no heartbeats"}
	case m.Quarantined:
		m.Obstacle = quarantined(mc)
	case m.Cordoned:
		m.Obstacle = cordoned(mc.Name)
	case m.Paused:
		m.Obstacle = paused(mc.Name)
	case status.Healthy.Status == "":
		m.Obstacle = scheduling.Obstacle{Reason: reasons.Unhealthy, Message: "the health of the member is not known yet"}
	case !status.Ready:
		m.Obstacle = scheduling.Obstacle{Reason: status.Reason, Message: "the member is not healthy: " + status.Message}
	}
	if agent := clusterv1beta1.FindAgent(mc.Status.AgentStatus, clusterv1beta1.MemberAgent); agent != nil && m.Lost {
		m.LastBeat = later(seen.LastBeat, agent.LastReceivedHeartbeat.Time)
	}
	return m
}

// cordoned is the obstacle of a cordoned member.
func cordoned(name string) scheduling.Obstacle {
	return scheduling.Obstacle{
		Reason: reasons.Cordoned, Message: "the member is cordoned and gets no new deliveries: muster cordon " + name + " --undo",
	}
}

// paused is the obstacle of a paused member.
func paused(name string) scheduling.Obstacle {
	return scheduling.Obstacle{
		Reason: reasons.Paused, Message: "the member is paused, and gets nothing new: " + membership.Unpause(name),
	}
}

// quarantined is the obstacle of a quarantined member.
func quarantined(member metav1.Object) scheduling.Obstacle {
	return scheduling.Obstacle{
		Reason: reasons.Quarantined, Message: "the member is quarantined, and nothing changes on it: " + membership.EndQuarantine(member),
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a.Truncate(time.Second)
	}
	return b
}

// admittedNamespaces returns the namespaces of the ResourcePlacements a member admits, by the first
// annotation among the objects.
func admittedNamespaces(list string, objects ...metav1.Object) (namespaces []string) {
	for _, o := range objects {
		if value, found := o.GetAnnotations()[scheduling.AnnotationFrom]; found {
			list = value
			break
		}
	}
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			namespaces = append(namespaces, name)
		}
	}
	return namespaces
}

// ofCluster returns the member of a Cluster in a workspace; report is nil if its agent does not
// write one.
func ofCluster(
	workspace metav1.Object, cluster *fleet.Cluster, report *clusterv1beta1.InternalMemberCluster, seen liveness.Observation,
) *scheduling.Member {
	m := &scheduling.Member{
		Name: cluster.Namespace + "/" + cluster.Name, Namespace: membership.DeliveryNamespace(cluster),
		Epoch: membership.Epoch(cluster), Labels: cluster.Labels, Taints: membership.Taints(cluster),
		Cordoned: membership.Cordoned(cluster), Paused: membership.Paused(cluster) || membership.Quarantined(cluster),
		Quarantined:        membership.Quarantined(cluster),
		Leaving:            cluster.DeletionTimestamp != nil || membership.Revoked(cluster),
		AdmittedNamespaces: admittedNamespaces("", cluster, workspace),
	}
	if report != nil {
		m.Properties, m.Usage, m.Namespaces = report.Status.Properties, report.Status.ResourceUsage, report.Status.Namespaces
		m.MoreNamespaces = meta.IsStatusConditionFalse(report.Status.Conditions, clusterv1beta1.ConditionNamespacesCollected)
	}
	status := membership.ClusterStatus(&cluster.Status, nil)
	m.Lost = silent(seen, status.Agent)
	switch {
	case membership.Revoked(cluster):
		m.Obstacle = scheduling.Obstacle{Reason: reasons.Revoked, Message: "the Cluster is revoked"}
	case m.Leaving:
		m.Obstacle = scheduling.Obstacle{Reason: reasons.Leaving, Message: "the Cluster is being deleted"}
	case m.Lost:
		m.Obstacle = scheduling.Obstacle{Reason: reasons.AgentLost, Message: "the Cluster is lost: its agent sends no heartbeats"}
	case status.Agent == membership.AgentUnknown || cluster.Status.Namespace == "" || cluster.Status.Agent.LastSeen.IsZero():
		m.Obstacle = scheduling.Obstacle{Reason: reasons.NotJoined, Message: "no agent of the Cluster has registered"}
	case m.Quarantined:
		m.Obstacle = quarantined(cluster)
	case m.Cordoned:
		m.Obstacle = cordoned(m.Name)
	case m.Paused:
		m.Obstacle = paused(m.Name)
	case membership.AwaitsApproval(cluster):
		m.Obstacle = scheduling.Obstacle{
			Reason:  reasons.ApprovalRequired,
			Message: "the Cluster waits for an approval of deliveries; for the command, read its condition DeliveryApproved",
		}
	case membership.Initializing(cluster):
		m.Obstacle = scheduling.Obstacle{
			Reason: reasons.NotInitialized, Message: "the Cluster is not initialized yet: its condition Initialized names the next gate",
		}
	case report == nil:
		m.Obstacle = scheduling.Obstacle{
			Reason: reasons.AgentCannotPlace, Message: "the agent of the Cluster is Rancher Fleet's, which does not apply Works",
		}
	case status.Agent != membership.AgentOnline: // unready Bundles do not matter
		m.Obstacle = scheduling.Obstacle{Reason: status.Reason, Message: "the Cluster is not ready: " + status.Message}
	}
	if m.Lost {
		m.LastBeat = later(seen.LastBeat, cluster.Status.Agent.LastSeen.Time)
	}
	return m
}

// members returns all members that placements may pick, or an error if they are unknown. Their maps
// belong to the cache and must not be changed.
func (c *Controller) members(ctx context.Context) ([]*scheduling.Member, error) {
	var memberClusters clusterv1beta1.MemberClusterList
	if err := c.Client.List(ctx, &memberClusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	members := make([]*scheduling.Member, 0, len(memberClusters.Items))
	for i := range memberClusters.Items {
		mc := &memberClusters.Items[i]
		members = append(members, ofMemberCluster(mc, c.Liveness.Observe(membernamespace.OfMemberCluster(mc).Namespace)))
	}
	workspaces, synced, failure := c.selector.Watches.Objects(optedIn)
	if !synced { // after the watch has listed them, all placements are reconciled
		return nil, fmt.Errorf("listing the workspaces with members for placements; meanwhile the hub picks and drops none of them: %w",
			cmp.Or(failure, errNotListed))
	}
	if len(workspaces) == 0 {
		return members, nil
	}
	for _, workspace := range workspaces {
		var clusters fleet.ClusterList
		if err := c.Client.List(ctx, &clusters, client.InNamespace(workspace.GetName()), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing Clusters of %s: %w", workspace.GetName(), err)
		}
		for i := range clusters.Items {
			cluster := &clusters.Items[i]
			key := types.NamespacedName{Namespace: membership.DeliveryNamespace(cluster), Name: cluster.Name}
			report := &clusterv1beta1.InternalMemberCluster{}
			if err := c.Client.Get(ctx, key, report, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
				report = nil
			} else if err != nil {
				return nil, fmt.Errorf("reading InternalMemberCluster %s: %w", key, err)
			}
			members = append(members, ofCluster(workspace, cluster, report, c.Liveness.Observe(key.Namespace)))
		}
	}
	return members, nil
}
