package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/rollup"
)

// coalesce is how long reports of deployments are gathered before the Cluster shows them.
const coalesce = time.Second

// rollUp counts the deployments in the member namespace.
func (c *Controller) rollUp(ctx context.Context, o *observed, workspace string) error {
	var list fleet.BundleDeploymentList
	if err := c.Client.List(ctx, &list, client.InNamespace(o.memberNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the BundleDeployments of %s: %w", o.memberNamespace, err)
	}
	entries := make([]rollup.Entry, 0, len(list.Items))
	for i := range list.Items {
		d := &list.Items[i]
		entry := rollup.Entry{Name: d.Name, State: rollup.StateOf(d), Message: rollup.Message(d), Deployment: d}
		if from := d.Labels[fleet.LabelBundleNamespace]; from != "" && from != workspace {
			entry.Name = from + "/" + d.Name
		}
		entries = append(entries, entry)
		rollup.AddCounts(&o.resources, d.Status.ResourceCounts)
	}
	o.bundles = rollup.Summarize(entries)
	return nil
}

// onDeployment has the Cluster looked at in a moment, once for all reports of that time.
func (c *Controller) onDeployment() handler.EventHandler {
	wake := func(ctx context.Context, o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		namespace, err := c.namespaceMetadata(ctx, o.GetNamespace())
		if err != nil {
			return // the member has left
		}
		for _, request := range toCluster(ctx, namespace) {
			q.AddAfter(request, coalesce)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.Object, q)
		},
	}
}
