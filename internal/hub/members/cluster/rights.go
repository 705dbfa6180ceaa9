package cluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// onRights enqueues the Cluster of a deleted or written right. The cache holds only metadata, so
// onRights marks the Cluster for a comparison of its rights. A new right matters only to a
// quarantined Cluster: a registration may have granted it a moment before.
func (c *Controller) onRights(ctx context.Context, before, after client.Object, q controller.Queue) {
	if before == nil {
		c.onNewRight(ctx, after, q)
		return
	}
	if after != nil && before.GetResourceVersion() == after.GetResourceVersion() {
		return
	}
	key, known := membership.RecordOf(before)
	if !known {
		return
	}
	if after != nil {
		c.editedRights.Set(key, true)
	}
	q.Add(reconcile.Request{NamespacedName: key})
}

func (c *Controller) onNewRight(ctx context.Context, right client.Object, q controller.Queue) {
	key, known := membership.RecordOf(right)
	if !known {
		return
	}
	var cluster fleet.Cluster
	if err := c.Client.Get(ctx, key, &cluster, client.UnsafeDisableDeepCopy); err == nil && membership.Quarantined(&cluster) {
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

// restoreEdited resets the edited rights of a member. Without a mark it reads nothing.
func (c *Controller) restoreEdited(ctx context.Context, member membernamespace.Member, rights []client.Object) error {
	key := types.NamespacedName{Namespace: member.Workspace, Name: member.Name}
	if _, edited := c.editedRights.Take(key); !edited {
		return nil
	}
	for _, right := range rights {
		switch right.(type) {
		case *rbacv1.Role, *rbacv1.RoleBinding:
		default:
			continue
		}
		_, found, same, err := kube.ReadRight(ctx, c.Live, right)
		if err == nil && found && !same { // the deletion of one is an event of its own
			err = kube.Ensure(ctx, c.Client, right)
		}
		if err != nil {
			c.editedRights.Set(key, true)
			return fmt.Errorf("restoring the rights of a member: %w", err)
		}
	}
	return nil
}
