package bundle

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/fleet/selection"
	"github.com/muster-fleet/muster/internal/hub/bundles/rollup"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// bundleOf returns the key of the Bundle of a BundleDeployment or of the Secret with its values;
// all three have one name.
func bundleOf(o client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetLabels()[fleet.LabelBundleNamespace], Name: o.GetName()}
}

// ListDeployments fills a list with the BundleDeployments of a Bundle, from the cache. Callers
// must not change them.
func ListDeployments(ctx context.Context, c client.Reader, bundle types.NamespacedName, list *fleet.BundleDeploymentList) error {
	return c.List(ctx, list, client.MatchingFields{indexBundle: bundle.String()}, client.UnsafeDisableDeepCopy)
}

func enqueueBundleOf(q controller.Queue, o client.Object) { enqueueBundleAfter(q, o, 0) }

func enqueueBundleAfter(q controller.Queue, o client.Object, wait time.Duration) {
	if key := bundleOf(o); key.Namespace != "" {
		q.AddAfter(reconcile.Request{NamespacedName: key}, wait)
	}
}

func enqueue(q controller.Queue, requests []reconcile.Request) {
	for _, request := range requests {
		q.Add(request)
	}
}

// list fills a list from the cache. It logs errors, because an event handler cannot return them.
func (c *Controller) list(ctx context.Context, list client.ObjectList, options ...client.ListOption) {
	if err := c.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the objects of an event")
	}
}

// onDeployment enqueues the Bundle of a BundleDeployment. A deleted deployment may have blocked
// another Bundle with the same name.
func (c *Controller) onDeployment(ctx context.Context, before, after *fleet.BundleDeployment, q controller.Queue) {
	if refusesValues(after) && !refusesValues(before) || refusesCopies(after) && !refusesCopies(before) {
		c.editedSecrets.Set(client.ObjectKeyFromObject(after), "refused") // they may have been edited while no hub ran
	}
	switch {
	case after == nil:
		c.deploymentWrites.Forget(client.ObjectKeyFromObject(before))
		c.sent.Forget(before.UID)
		c.lost.deleted(before)
		enqueueBundleOf(q, before)
		var bundles fleet.BundleList
		c.list(ctx, &bundles, client.MatchingFields{indexName: before.Name})
		enqueue(q, requestsFor(bundles.Items))
	case before == nil:
		enqueueBundleAfter(q, after, gather)
	case !rollup.OnlyShown(before, after):
		enqueueBundleAfter(q, after, gather)
		if bundleOf(before) != bundleOf(after) {
			enqueueBundleOf(q, before)
		}
	}
}

// onSecret enqueues the Bundle with values deleted or changed by another client.
func (c *Controller) onSecret(_ context.Context, before, after client.Object, q controller.Queue) {
	switch {
	case after == nil:
		key := client.ObjectKeyFromObject(before)
		c.secretWrites.Forget(key)
		c.editedSecrets.Forget(key)
		enqueueBundleOf(q, before)
	case before != nil && before.GetResourceVersion() != after.GetResourceVersion():
		key := client.ObjectKeyFromObject(after)
		if written, _ := c.secretWrites.Pending(key); written != nil && written.GetResourceVersion() == after.GetResourceVersion() {
			return
		}
		c.editedSecrets.Set(key, after.GetResourceVersion())
		enqueueBundleOf(q, after)
	}
}

// onContent enqueues the Bundles with a deleted Content.
func (c *Controller) onContent(_ context.Context, before, after client.Object, q controller.Queue) {
	if after != nil {
		return
	}
	for _, key := range c.contents.lost(before.GetName()) {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

// onCluster enqueues the Bundles selected for, or deployed on, a Cluster.
func (c *Controller) onCluster(ctx context.Context, before, after *fleet.Cluster, q controller.Queue) {
	switch {
	case after == nil:
		enqueue(q, c.ofCluster(ctx, before))
	case before == nil:
		enqueue(q, c.ofCluster(ctx, after))
	case relevant(before, after):
		c.onQuarantine(ctx, before, after, q)
		enqueue(q, c.ofCluster(ctx, after))
		if !maps.Equal(before.Labels, after.Labels) { // a Bundle's status may name the Cluster without a deployment
			enqueue(q, c.ofCluster(ctx, before))
		}
	}
}

// relevant reports whether a change of a Cluster affects a Bundle or its status. Most changes are
// heartbeats and counts.
func relevant(before, after *fleet.Cluster) bool {
	return before.Generation != after.Generation || membership.DeliveryNamespace(before) != membership.DeliveryNamespace(after) ||
		!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
		membership.OutsideWindow(&before.Status) != membership.OutsideWindow(&after.Status) ||
		gone(before) != gone(after) || lostMessage(before) != lostMessage(after) ||
		membership.AwaitsApproval(before) != membership.AwaitsApproval(after) ||
		!equality.Semantic.DeepEqual(before.Status.Initialization, after.Status.Initialization)
}

// gone returns the reason why the agent of a Cluster sends no further reports, or "".
func gone(cluster *fleet.Cluster) string {
	return membership.ClusterStatus(&cluster.Status, nil).Agent.Gone()
}

// ofCluster returns requests for the Bundles selecting a Cluster, or with a deployment there. An
// agent's Bundle is found by its owner. There are as many as Clusters, so matching each with each
// would take minutes when a hub starts.
func (c *Controller) ofCluster(ctx context.Context, cluster *fleet.Cluster) []reconcile.Request {
	var own fleet.BundleList
	c.list(ctx, &own, client.InNamespace(cluster.Namespace), client.MatchingFields{indexCluster: string(cluster.UID)})
	var groups fleet.ClusterGroupList
	c.list(ctx, &groups, client.InNamespace(cluster.Namespace))
	requests, in := requestsFor(own.Items), selection.GroupsOf(cluster, selection.Groups(groups.Items))
	for _, bundle := range c.bundlesFor(ctx, cluster.Namespace) {
		m, err := newMatcher(&bundle)
		if key := client.ObjectKeyFromObject(&bundle); (err == nil && m.Match(cluster, in) != nil) || c.deployedOn(ctx, cluster, key) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

func requestsFor(bundles []fleet.Bundle) []reconcile.Request {
	requests := make([]reconcile.Request, len(bundles))
	for i := range bundles {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&bundles[i])
	}
	return requests
}

func (c *Controller) deployedOn(ctx context.Context, cluster *fleet.Cluster, bundle types.NamespacedName) bool {
	var d fleet.BundleDeployment
	key := types.NamespacedName{Namespace: membership.DeliveryNamespace(cluster), Name: bundle.Name}
	return c.Client.Get(ctx, key, &d, client.UnsafeDisableDeepCopy) == nil && bundleOf(&d) == bundle
}

// bundlesFor returns the Bundles that may target a workspace: its own, and Bundles admitted by a
// mapping.
func (c *Controller) bundlesFor(ctx context.Context, workspace string) []fleet.Bundle {
	var own fleet.BundleList
	c.list(ctx, &own, client.InNamespace(workspace), client.MatchingFields{indexCluster: anyCluster})
	found, seen := own.Items, map[types.UID]bool{}
	var mappings fleet.BundleNamespaceMappingList
	c.list(ctx, &mappings)
	if len(mappings.Items) == 0 {
		return found
	}
	namespace, err := c.Workspaces.Named(ctx, workspace)
	if err != nil || namespace == nil {
		return found
	}
	for i := range mappings.Items {
		mapping := &mappings.Items[i]
		if mapping.Namespace == workspace || !opens(c.Config.Current().Mappings, mapping, namespace) {
			continue
		}
		for _, other := range c.selectedBundles(ctx, mapping) {
			if !seen[other.UID] {
				seen[other.UID] = true
				found = append(found, other)
			}
		}
	}
	return found
}

// selectedBundles returns the Bundles of a mapping.
func (c *Controller) selectedBundles(ctx context.Context, mapping *fleet.BundleNamespaceMapping) []fleet.Bundle {
	var list fleet.BundleList
	c.list(ctx, &list, client.InNamespace(mapping.Namespace), client.MatchingFields{indexCluster: anyCluster},
		client.MatchingLabelsSelector{Selector: bundleSelector(mapping)})
	return list.Items
}

// ofGroup returns requests for the Bundles affected by the ClusterGroups of a workspace.
func (c *Controller) ofGroup(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	for _, bundle := range c.bundlesFor(ctx, o.GetNamespace()) {
		if m, err := newMatcher(&bundle); err == nil && m.UsesGroups() {
			requests = append(requests, controller.Requests(&bundle)...)
		}
	}
	return requests
}

// ofMapping returns requests for the Bundles of a mapping.
func (c *Controller) ofMapping(ctx context.Context, o client.Object) []reconcile.Request {
	return requestsFor(c.selectedBundles(ctx, o.(*fleet.BundleNamespaceMapping)))
}

// onMemberNamespace enqueues the Bundles of a Cluster with a new member namespace.
func (c *Controller) onMemberNamespace(ctx context.Context, before, after client.Object, q controller.Queue) {
	if before != nil {
		return
	}
	var cluster fleet.Cluster
	if key, ok := membership.RecordOf(after); ok && c.Client.Get(ctx, key, &cluster) == nil {
		enqueue(q, c.ofCluster(ctx, &cluster))
	}
}

// onSettings returns requests for the Bundles of all mappings, and for Bundles held back: new
// settings may release them.
func (c *Controller) onSettings(ctx context.Context, _ client.Object) []reconcile.Request {
	requests := c.heldBack(ctx)
	var mappings fleet.BundleNamespaceMappingList
	c.list(ctx, &mappings)
	for i := range mappings.Items {
		requests = append(requests, c.ofMapping(ctx, &mappings.Items[i])...)
	}
	return requests
}

// heldBack returns requests for the Bundles waiting for a user to confirm a removal.
func (c *Controller) heldBack(ctx context.Context, options ...client.ListOption) (requests []reconcile.Request) {
	var bundles fleet.BundleList
	c.list(ctx, &bundles, options...)
	for i := range bundles.Items {
		if kube.ReasonOf(bundles.Items[i].Status.Conditions, fleet.ConditionProcessed) == reasons.RemovalHeld {
			requests = append(requests, controller.Requests(&bundles.Items[i])...)
		}
	}
	return requests
}

// onWorkspace enqueues the Bundles of mappings with a namespace just opened or closed. It also
// enqueues the Bundles held back in a namespace with a changed removal share.
func (c *Controller) onWorkspace(ctx context.Context, before, after *metav1.PartialObjectMetadata, q controller.Queue) {
	if after != nil && before != nil && before.Annotations[fleet.AnnotationRemovalBrake] != after.Annotations[fleet.AnnotationRemovalBrake] {
		enqueue(q, c.heldBack(ctx, client.InNamespace(after.Name)))
	}
	if after == nil || before != nil && !mattersToMappings(before, after) {
		return
	}
	var mappings fleet.BundleNamespaceMappingList
	c.list(ctx, &mappings)
	settings := c.Config.Current().Mappings
	for i := range mappings.Items {
		mapping := &mappings.Items[i]
		changed := opens(settings, mapping, before) != opens(settings, mapping, after) || selects(mapping, before) != selects(mapping, after)
		if before != nil && invalid(mapping) != nil { // its deployments stay as long as the namespace consents
			changed = mayOpen(settings, mapping.Namespace, before) != mayOpen(settings, mapping.Namespace, after)
		}
		if changed {
			enqueue(q, c.ofMapping(ctx, mapping))
		}
	}
}
