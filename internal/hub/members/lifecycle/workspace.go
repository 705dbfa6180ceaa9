package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// workspace is the state of the label of one workspace.
type workspace struct {
	// mu orders concurrent joins and departures of Clusters.
	mu       sync.Mutex
	labelled bool
	// present holds the Clusters seen by this process, except leaving ones.
	present map[types.NamespacedName]bool
}

func (c *Controller) workspaceOf(record client.Object) *workspace {
	return c.workspaces.Of(record.GetNamespace(), &workspace{present: map[types.NamespacedName]bool{}})
}

// markWorkspace labels the workspace of a Cluster. An admission policy then protects the workspace
// from accidental deletion. The hub removes the label before the finalizer of the last Cluster, so
// a workspace keeps the label no longer than its members.
func (c *Controller) markWorkspace(ctx context.Context, record client.Object) error {
	if record.GetNamespace() == "" {
		return nil
	}
	w := c.workspaceOf(record)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.present[client.ObjectKeyFromObject(record)] = true
	if w.labelled {
		return nil
	}
	err := c.labelWorkspace(ctx, record.GetNamespace(), "true")
	w.labelled = err == nil
	return err
}

// unmarkWorkspace removes the label with the last Cluster. It lists the Clusters only if this
// process knows of no other, as soon after its start.
func (c *Controller) unmarkWorkspace(ctx context.Context, leaving client.Object) error {
	if leaving.GetNamespace() == "" {
		return nil
	}
	w := c.workspaceOf(leaving)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.present, client.ObjectKeyFromObject(leaving))
	if others, err := c.othersIn(ctx, w); err != nil || others {
		return err
	}
	var clusters fleet.ClusterList
	if err := c.Client.List(ctx, &clusters, client.InNamespace(leaving.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the Clusters of workspace %s: %w", leaving.GetNamespace(), err)
	}
	if slices.ContainsFunc(clusters.Items, func(cluster fleet.Cluster) bool { return cluster.DeletionTimestamp == nil }) {
		return nil
	}
	w.labelled = false
	return c.labelWorkspace(ctx, leaving.GetNamespace(), nil)
}

// othersIn reports whether the workspace has another known Cluster that does not leave. It drops
// deleted Clusters, for example after a user has removed the finalizer.
func (c *Controller) othersIn(ctx context.Context, w *workspace) (bool, error) {
	for key := range w.present {
		var cluster fleet.Cluster
		err := c.Client.Get(ctx, key, &cluster)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reading Cluster %s: %w", key, err)
		}
		if err == nil && cluster.DeletionTimestamp == nil {
			return true, nil
		}
		delete(w.present, key)
	}
	return false, nil
}

// labelWorkspace sets or removes the label. If the hub lacks the right to a namespace, the
// namespace stays without a label; this must not hold back a member.
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
