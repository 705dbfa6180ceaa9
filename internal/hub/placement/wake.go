package placement

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/hub/placement/scheduling"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wake looks at a placement soon, because what it selects has changed. The key without a name stands for all.
func (c *Controller) wake(key types.NamespacedName) {
	if key.Name == "" {
		c.wakeAll(c.queue)
		return
	}
	c.queue.AddAfter(reconcile.Request{NamespacedName: key}, gather)
}

// wakeAll looks at every placement that was looked at before; the others are in the queue.
func (c *Controller) wakeAll(q queue) {
	for key := range c.known() {
		q.AddAfter(reconcile.Request{NamespacedName: key}, gather)
	}
}

func (c *Controller) known() map[types.NamespacedName]policy {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := make(map[types.NamespacedName]policy, len(c.policies))
	for key, p := range c.policies {
		known[key] = p
	}
	return known
}

// wakeConcerned looks at the placements to which the change of a member makes a difference.
func (c *Controller) wakeConcerned(q queue, before, after *scheduling.Member) {
	for key, p := range c.known() {
		if p.err == nil && p.compiled.Concerns(before, after) {
			q.AddAfter(reconcile.Request{NamespacedName: key}, gather)
		}
	}
}

// onWork follows what becomes of Works.
func (c *Controller) onWork() handler.EventHandler {
	wake := func(q queue, o client.Object) {
		if of, ok := parentOf(o); ok {
			q.AddAfter(reconcile.Request{NamespacedName: of}, gather)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wake(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { wake(q, e.ObjectOld); wake(q, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			c.mu.Lock()
			delete(c.applied, e.Object.GetUID())
			c.mu.Unlock()
			wake(q, e.Object)
		},
	}
}

func (c *Controller) onMemberCluster() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { c.wakeAll(q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, after := e.ObjectOld.(*clusterv1beta1.MemberCluster), e.ObjectNew.(*clusterv1beta1.MemberCluster)
			// Both are judged by the conditions alone: what liveness says now it says of both.
			c.wakeConcerned(q, ofMemberCluster(before, ""), ofMemberCluster(after, ""))
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { c.wakeAll(q) },
	}
}

func (c *Controller) onCluster() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if c.optedIn(e.Object.GetNamespace()) {
				c.wakeAll(q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if !c.optedIn(e.ObjectNew.GetNamespace()) {
				return
			}
			after, err := c.ofCluster(ctx, e.ObjectNew.(*fleet.Cluster))
			before, errBefore := c.ofCluster(ctx, e.ObjectOld.(*fleet.Cluster))
			if err != nil || errBefore != nil || before.Namespace != after.Namespace {
				c.wakeAll(q)
				return
			}
			c.wakeConcerned(q, before, after)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if c.optedIn(e.Object.GetNamespace()) {
				c.wakeAll(q)
			}
		},
	}
}

// onReport follows the figures that a Cluster's agent reports; those of a MemberCluster come with its record.
func (c *Controller) onReport(ctx context.Context, e event.UpdateEvent, q queue) {
	key, ok := membership.RecordOf(e.ObjectNew)
	if !ok || !c.optedIn(key.Namespace) {
		return
	}
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, key, &cluster); err != nil {
		return // the Cluster has left
	}
	before, after := e.ObjectOld.(*clusterv1beta1.InternalMemberCluster), e.ObjectNew.(*clusterv1beta1.InternalMemberCluster)
	c.wakeConcerned(q, ofCluster(&cluster, before, ""), ofCluster(&cluster, after, ""))
}

func (c *Controller) optedIn(workspace string) bool {
	workspaces, _, _ := c.selector.Watches.Answer(optedIn) // what is not read yet wakes everybody when it is
	for _, w := range workspaces {
		if w.GetName() == workspace {
			return true
		}
	}
	return false
}

// onKind follows kinds that come and go.
func (c *Controller) onKind() handler.EventHandler {
	changed := func(q queue) {
		c.selector.Kinds.Forget()
		c.wakeAll(q)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { changed(q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration() {
				changed(q)
			}
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { changed(q) },
	}
}
