package cluster

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// expiry returns the time to delete a Cluster without heartbeats; zero unless the hub created it
// for a request and it is unused.
func expiry(cluster *fleet.Cluster, o observed, life time.Duration) time.Time {
	_, made := cluster.Annotations[fleet.AnnotationCreatedByToken]
	if !made || life <= 0 || o.Seen() || o.managed || cluster.Generation > 1 {
		return time.Time{}
	}
	return cluster.CreationTimestamp.Add(life)
}

// untouched reports whether only the hub has written to a Cluster, apart from the status by agents.
func untouched(cluster *fleet.Cluster) bool {
	for _, entry := range cluster.ManagedFields {
		if entry.Subresource == "" && entry.Manager != string(kube.FieldOwner) {
			return false
		}
	}
	return len(cluster.ManagedFields) > 0
}

// expire deletes a Cluster created by the hub for a request if no agent has sent a heartbeat in
// time. It returns the deadline, or zero if there is nothing to wait for.
func (c *Controller) expire(ctx context.Context, cluster *fleet.Cluster, o observed) (time.Time, error) {
	settings := c.Config.Current()
	if settings.Unknown {
		return time.Time{}, nil
	}
	life := settings.Registration.NewClusterLifetime
	end := expiry(cluster, o, life)
	if end.IsZero() || c.Clock.Now().Before(end) {
		return end, nil
	}
	// The cache may lag behind a write of an administrator or an agent.
	var live fleet.Cluster
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(cluster), &live); err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	if live.UID != cluster.UID || live.DeletionTimestamp != nil || !live.Status.Agent.LastSeen.IsZero() || !untouched(&live) {
		return time.Time{}, nil
	}
	if beaten, err := c.leaseRenewed(ctx, membernamespace.OfCluster(&live)); err != nil || beaten {
		return time.Time{}, err
	}
	err := c.Client.Delete(ctx, &live, client.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return time.Time{}, nil // the event of the other write reconciles this Cluster again
	} else if err != nil {
		return time.Time{}, fmt.Errorf("deleting Cluster %s/%s, which has sent no heartbeat: %w", live.Namespace, live.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Cluster of a registration request deleted: its agent has sent no heartbeat",
		"created", live.CreationTimestamp.UTC(), "lifetime", life)
	c.Recorder.Eventf(&live, nil, corev1.EventTypeNormal, reasons.NeverJoined, "Delete",
		"created for a registration request, and its agent has sent no heartbeat in %s (registration.newClusterLifetime)", life)
	return time.Time{}, nil
}

// leaseRenewed reports whether an agent of Muster's has ever renewed the Lease, even while the hub
// did not run.
func (c *Controller) leaseRenewed(ctx context.Context, member membernamespace.Member) (bool, error) {
	var lease coordinationv1.Lease
	err := c.Live.Get(ctx, types.NamespacedName{Namespace: member.Namespace, Name: naming.HeartbeatLease}, &lease)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Lease %s/%s: %w", member.Namespace, naming.HeartbeatLease, err)
	}
	return err == nil && lease.Spec.RenewTime != nil, nil
}
