package lifecycle

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// markWorkspace labels the workspace of a Cluster, so that an admission policy keeps it from being
// deleted by accident. The label goes before the finalizer of the last Cluster, so a workspace
// keeps the label no longer than its members.
func (c *Controller) markWorkspace(ctx context.Context, record client.Object) error {
	workspace := record.GetNamespace()
	if _, marked := c.marked.Load(workspace); workspace == "" || marked {
		return nil
	}
	if err := c.labelWorkspace(ctx, workspace, "true"); err != nil {
		return err
	}
	c.marked.Store(workspace, true)
	return nil
}

// unmarkWorkspace removes the label with the last Cluster that does not leave.
func (c *Controller) unmarkWorkspace(ctx context.Context, leaving client.Object) error {
	workspace := leaving.GetNamespace()
	if workspace == "" {
		return nil
	}
	var clusters fleet.ClusterList
	if err := c.Client.List(ctx, &clusters, client.InNamespace(workspace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the Clusters of workspace %s: %w", workspace, err)
	}
	for i := range clusters.Items {
		if clusters.Items[i].DeletionTimestamp == nil {
			return nil
		}
	}
	c.marked.Delete(workspace)
	return c.labelWorkspace(ctx, workspace, nil)
}

// labelWorkspace sets or removes the label. A namespace that the hub may not change stays without:
// that must hold back no member.
func (c *Controller) labelWorkspace(ctx context.Context, workspace string, value any) error {
	namespace := kube.CoreMetadata("Namespace")
	err := c.Live.Get(ctx, types.NamespacedName{Name: workspace}, namespace)
	if err == nil && (namespace.Labels[fleet.LabelHasMembers] == "true") != (value != nil) {
		err = kube.PatchMetadata(ctx, c.Client, namespace, "labels", map[string]any{fleet.LabelHasMembers: value})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("changing the label %s of workspace %s: %w", fleet.LabelHasMembers, workspace, err)
	}
	return nil
}
