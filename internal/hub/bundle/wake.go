package bundle

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/membership"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// bundleOf leads from a deployment or its Secret to the Bundle, whose name they have.
func bundleOf(o client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetLabels()[fleet.LabelBundleNamespace], Name: o.GetName()}
}

func keyOfBundle(bundle *fleet.Bundle) types.NamespacedName {
	return client.ObjectKeyFromObject(bundle)
}

func wakeOwner(q queue, o client.Object) {
	if key := bundleOf(o); key.Namespace != "" {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

// onDeployment wakes the Bundle of a deployment. One that is gone may have stood in the way of another Bundle of its name.
func (c *Controller) onDeployment() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { wakeOwner(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			wakeOwner(q, e.ObjectNew)
			if bundleOf(e.ObjectOld) != bundleOf(e.ObjectNew) {
				wakeOwner(q, e.ObjectOld)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			c.settling.forget(client.ObjectKeyFromObject(e.Object))
			wakeOwner(q, e.Object)
			var list fleet.BundleList
			if err := c.Client.List(ctx, &list, client.MatchingFields{indexName: e.Object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Looking for Bundles of a name", "name", e.Object.GetName())
			}
			for i := range list.Items {
				q.Add(reconcile.Request{NamespacedName: keyOfBundle(&list.Items[i])})
			}
		},
	}
}

// onSecret wakes the Bundle whose values were deleted, or changed by somebody else.
func (c *Controller) onSecret() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if c.values.suspect(e.ObjectNew) {
				wakeOwner(q, e.ObjectNew)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			c.values.forget(client.ObjectKeyFromObject(e.Object))
			wakeOwner(q, e.Object)
		},
	}
}

// onContent wakes the Bundles whose Content is gone.
func (c *Controller) onContent() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
		for _, key := range c.contents.lose(e.Object.GetName()) {
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}}
}

// onCluster wakes the Bundles that a Cluster gets, or has.
func (c *Controller) onCluster() handler.EventHandler {
	wake := func(ctx context.Context, o client.Object, q queue) {
		for _, request := range c.ofCluster(ctx, o.(*fleet.Cluster)) {
			q.Add(request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if before, after := e.ObjectOld.(*fleet.Cluster), e.ObjectNew.(*fleet.Cluster); relevant(before, after) {
				wake(ctx, after, q)
			}
		},
	}
}

// relevant says whether something changed about a Cluster that a Bundle depends on or shows. Most changes are beats and counts.
func relevant(before, after *fleet.Cluster) bool {
	return before.Generation != after.Generation || before.Status.Namespace != after.Status.Namespace ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
		lostMessage(before) != lostMessage(after)
}

// ofCluster returns the Bundles that are for a Cluster, or have a deployment there.
func (c *Controller) ofCluster(ctx context.Context, cluster *fleet.Cluster) []reconcile.Request {
	bundles, err := c.bundlesFor(ctx, cluster.Namespace)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Looking for the Bundles of a Cluster", "cluster", client.ObjectKeyFromObject(cluster))
		return nil
	}
	var groups fleet.ClusterGroupList
	if err := c.Client.List(ctx, &groups, client.InNamespace(cluster.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Looking for the ClusterGroups of a Cluster", "cluster", client.ObjectKeyFromObject(cluster))
		return nil
	}
	in := groupsOf(cluster, groups.Items)
	var requests []reconcile.Request
	for i := range bundles {
		key := keyOfBundle(&bundles[i])
		m, err := newMatcher(&bundles[i])
		if (err == nil && m.match(cluster, in) != nil) || c.deployedOn(ctx, cluster, key) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

func (c *Controller) deployedOn(ctx context.Context, cluster *fleet.Cluster, bundle types.NamespacedName) bool {
	var d fleet.BundleDeployment
	err := c.Client.Get(ctx, types.NamespacedName{Namespace: cluster.Status.Namespace, Name: bundle.Name}, &d)
	return err == nil && bundleOf(&d) == bundle
}

// bundlesFor returns the Bundles that may target Clusters of a workspace: its own, and those that a mapping lets in.
func (c *Controller) bundlesFor(ctx context.Context, workspace string) ([]fleet.Bundle, error) {
	var list fleet.BundleList
	if err := c.Client.List(ctx, &list, client.InNamespace(workspace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var mappings fleet.BundleNamespaceMappingList
	if err := c.Client.List(ctx, &mappings, client.UnsafeDisableDeepCopy); err != nil || len(mappings.Items) == 0 {
		return list.Items, err
	}
	found, asked := list.Items, map[string]bool{workspace: true}
	for _, mapping := range mappings.Items {
		if asked[mapping.Namespace] {
			continue
		}
		asked[mapping.Namespace] = true
		var others fleet.BundleList
		if err := c.Client.List(ctx, &others, client.InNamespace(mapping.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		found = append(found, others.Items...)
	}
	return found, nil
}

// ofGroup returns the Bundles to which ClusterGroups of a workspace matter.
func (c *Controller) ofGroup(ctx context.Context, o client.Object) []reconcile.Request {
	bundles, err := c.bundlesFor(ctx, o.GetNamespace())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Looking for the Bundles of a ClusterGroup", "group", client.ObjectKeyFromObject(o))
	}
	var requests []reconcile.Request
	for i := range bundles {
		if m, err := newMatcher(&bundles[i]); err == nil && m.usesGroups() {
			requests = append(requests, reconcile.Request{NamespacedName: keyOfBundle(&bundles[i])})
		}
	}
	return requests
}

// ofMapping returns the Bundles of the mapping's namespace.
func (c *Controller) ofMapping(ctx context.Context, o client.Object) []reconcile.Request {
	var list fleet.BundleList
	if err := c.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Looking for the Bundles of a BundleNamespaceMapping", "mapping", client.ObjectKeyFromObject(o))
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: keyOfBundle(&list.Items[i])})
	}
	return requests
}

// onMemberNamespace wakes the Bundles of a Cluster whose member namespace was made anew.
func (c *Controller) onMemberNamespace() handler.EventHandler {
	return handler.Funcs{CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
		var cluster fleet.Cluster
		if key, ok := membership.RecordOf(e.Object); ok && c.Client.Get(ctx, key, &cluster) == nil {
			for _, request := range c.ofCluster(ctx, &cluster) {
				q.Add(request)
			}
		}
	}}
}

// onWorkspace wakes the Bundles that a mapping lets into a namespace whose labels changed, or into which it lets them no more.
func (c *Controller) onWorkspace() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], q queue) {
			c.wakeMapped(ctx, q, e.Object.Labels)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], q queue) {
			if !maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) {
				c.wakeMapped(ctx, q, e.ObjectOld.Labels, e.ObjectNew.Labels)
			}
		},
	}
}

// wakeMapped wakes the Bundles of the mappings that select a namespace with one of these sets of labels.
func (c *Controller) wakeMapped(ctx context.Context, q queue, sets ...map[string]string) {
	var mappings fleet.BundleNamespaceMappingList
	if err := c.Client.List(ctx, &mappings, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Looking for BundleNamespaceMappings")
	}
	for i := range mappings.Items {
		selector, err := metav1.LabelSelectorAsSelector(mappings.Items[i].NamespaceSelector)
		if err != nil || !slices.ContainsFunc(sets, func(set map[string]string) bool { return selector.Matches(labels.Set(set)) }) {
			continue
		}
		for _, request := range c.ofMapping(ctx, &mappings.Items[i]) {
			q.Add(request)
		}
	}
}
