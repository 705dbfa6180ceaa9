package placement

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/placement/override"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// indexKey returns an index function for objects with a placement.
func indexKey(parent func(metav1.Object) (types.NamespacedName, bool)) client.IndexerFunc {
	return func(o client.Object) []string {
		if key, ok := parent(o); ok {
			return []string{key.String()}
		}
		return nil
	}
}

// unknown is the observation of a member when only conditions are compared.
var unknown liveness.Observation

// enqueueSoon reconciles a placement once for all events of a short time.
func (c *Controller) enqueueSoon(q controller.Queue, key types.NamespacedName) {
	q.AddAfter(reconcile.Request{NamespacedName: key}, c.memory.gather(key))
}

// enqueue reconciles a placement after a change of its selected objects. The key without a name
// belongs to the watch of opted-in workspaces, and stands for all placements. Before the
// controller starts, no placement is known.
func (c *Controller) enqueue(key types.NamespacedName) {
	switch q := c.queue.Load(); {
	case q == nil:
	case key.Name == "":
		c.enqueueAll(*q)
	default:
		c.enqueueSoon(*q, key)
	}
}

func (c *Controller) enqueueAll(q controller.Queue) {
	for key := range c.memory.keys(nil) {
		c.enqueueSoon(q, key)
	}
}

// enqueueAffected reconciles the placements affected by the change of a member.
func (c *Controller) enqueueAffected(q controller.Queue, before, after *scheduling.Member) {
	for key := range c.memory.keys(func(p *placementMemory) bool { return p.affectedBy(before, after) }) {
		c.enqueueSoon(q, key)
	}
}

func (c *Controller) onWork(_ context.Context, before, after *placement.Work, q controller.Queue) {
	if after == nil {
		c.memory.forgetWork(before.UID)
	}
	for _, work := range []*placement.Work{before, after} {
		if work == nil {
			continue
		}
		key, ok := parentOf(work)
		if !ok {
			key, ok = inheritedFrom(work)
		}
		if ok {
			c.enqueueSoon(q, key)
		}
	}
}

func (c *Controller) onSettings(_ context.Context, _, _ client.Object, q controller.Queue) {
	c.enqueueAll(q)
}

func (c *Controller) onStatusCopy(_ context.Context, before, _ *placement.ClusterResourcePlacementStatus, q controller.Queue) {
	if before != nil { // a new copy is unchanged
		c.enqueueSoon(q, types.NamespacedName{Name: before.Name})
	}
}

// enqueuePlaced enqueues all placements with Works in a member namespace, if a quarantine has begun
// or ended there. Some of them may be deleted, and have no policy any more.
func (c *Controller) enqueuePlaced(ctx context.Context, q controller.Queue, namespace string, before, after client.Object) {
	if membership.Quarantined(before) == membership.Quarantined(after) {
		return
	}
	var works placement.WorkList
	if err := c.Client.List(ctx, &works, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		c.enqueueAll(q)
		return
	}
	for i := range works.Items {
		if key, ok := parentOf(&works.Items[i]); ok {
			c.enqueueSoon(q, key)
		}
	}
}

func (c *Controller) onMemberCluster(ctx context.Context, before, after *clusterv1beta1.MemberCluster, q controller.Queue) {
	if before == nil || after == nil {
		c.enqueueAll(q)
		return
	}
	c.enqueuePlaced(ctx, q, membernamespace.OfMemberCluster(after).Namespace, before, after)
	// Both have the same state of liveness here, so only their conditions are compared.
	c.enqueueAffected(q, ofMemberCluster(before, unknown), ofMemberCluster(after, unknown))
}

func (c *Controller) onCluster(ctx context.Context, before, after *fleet.Cluster, q controller.Queue) {
	either := after
	if after == nil {
		either = before
	}
	workspace := c.optedIn(either.Namespace)
	if workspace == nil {
		return
	}
	if before == nil || after == nil || membership.DeliveryNamespace(before) != membership.DeliveryNamespace(after) {
		c.enqueueAll(q)
		return
	}
	c.enqueuePlaced(ctx, q, membership.DeliveryNamespace(after), before, after)
	var report *clusterv1beta1.InternalMemberCluster
	stored := &clusterv1beta1.InternalMemberCluster{}
	if err := c.Client.Get(ctx, types.NamespacedName{Namespace: membership.DeliveryNamespace(after), Name: after.Name}, stored); err == nil {
		report = stored
	} else if !apierrors.IsNotFound(err) {
		c.enqueueAll(q)
		return
	}
	c.enqueueAffected(q, ofCluster(workspace, before, report, unknown), ofCluster(workspace, after, report, unknown))
}

// onReport follows the resource usage and properties reported by a Cluster's agent. A
// MemberCluster has them itself.
func (c *Controller) onReport(ctx context.Context, before, after *clusterv1beta1.InternalMemberCluster, q controller.Queue) {
	if before == nil || after == nil {
		return // the Cluster changes, too
	}
	if reportsHandOver(before) != reportsHandOver(after) {
		c.onHandOver(ctx, after.Namespace, q)
	}
	key, ok := membership.RecordOf(after)
	workspace := c.optedIn(key.Namespace)
	if !ok || workspace == nil {
		return
	}
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, key, &cluster); err != nil {
		return // the Cluster has left
	}
	c.enqueueAffected(q, ofCluster(workspace, &cluster, before, unknown), ofCluster(workspace, &cluster, after, unknown))
}

// optedIn returns a workspace whose Clusters placements may pick, or nil. After the first list of
// these workspaces, all placements are reconciled.
func (c *Controller) optedIn(workspace string) metav1.Object {
	if w := c.selector.Watches.Object(optedIn, types.NamespacedName{Name: workspace}); w != nil {
		return w
	}
	return nil
}

// onOverride reconciles the placements affected by an override, before or after its change.
func (c *Controller) onOverride(ctx context.Context, before, after client.Object, q controller.Queue) {
	if before != nil && after != nil && before.GetGeneration() == after.GetGeneration() && ofOverride(before).SameAuthor(ofOverride(after)) {
		return
	}
	for _, object := range []client.Object{before, after} {
		if object == nil {
			continue
		}
		if object == after && after.GetDeletionTimestamp() == nil {
			c.warnUnplaced(ctx, after)
		}
		o := ofOverride(object)
		for key := range c.memory.keys(nil) {
			if !o.For(key) {
				continue
			}
			// An unreadable placement is gone, or is reconciled once it exists.
			if s, err := c.get(ctx, key); err == nil && (o.Names() || mayChange(o, s.status)) {
				c.enqueueSoon(q, key)
			}
		}
	}
}

// warnUnplaced sends an Event if the placement of an override does not exist. No placement can show
// it.
func (c *Controller) warnUnplaced(ctx context.Context, object client.Object) {
	keys := ofOverride(object).Placements()
	for _, key := range keys {
		if _, err := c.get(ctx, key); !apierrors.IsNotFound(err) {
			return
		}
	}
	if len(keys) > 0 {
		c.Recorder.Eventf(object, nil, corev1.EventTypeWarning, reasons.PlacementNotFound, "Override",
			"it has no effect: spec.placement names %s, which does not exist; correct the name, or create the placement", keys[0].Name)
	}
}

func ofOverride(object client.Object) override.Override {
	if o, ok := object.(*placement.ClusterResourceOverride); ok {
		return override.OfCluster(o)
	}
	return override.OfNamespace(object.(*placement.ResourceOverride))
}

// mayChange reports whether an override selects an object of a placement, or may do so because
// the status does not list everything.
func mayChange(o override.Override, status *placement.PlacementStatus) bool {
	if status.ObservedResourceIndex == "" || !listsAll(status.SelectedResources) {
		return true
	}
	for _, r := range status.SelectedResources {
		isEnvelope := r.Group == placement.GroupVersion.Group // the status does not list its contents
		if o.Selects(r) || isEnvelope && (o.Namespace == "" || o.Namespace == r.Namespace) {
			return true
		}
	}
	return false
}
