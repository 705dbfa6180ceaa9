package cluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// onRights reconciles the Cluster of whose rights one was deleted or written. The cache has only metadata, so that the Cluster is marked to have its rights
// compared.
func (c *Controller) onRights(_ context.Context, before, after client.Object, q controller.Queue) {
	if before == nil || after != nil && before.GetResourceVersion() == after.GetResourceVersion() {
		return
	}
	key, known := membership.RecordOf(before)
	if !known {
		return
	}
	if after != nil {
		c.editedRights.Store(key, true)
	}
	q.Add(reconcile.Request{NamespacedName: key})
}

// restoreEdited sets back those of a member's rights that somebody has edited. Without a mark nothing is read.
func (c *Controller) restoreEdited(ctx context.Context, member membernamespace.Member, rights []client.Object) error {
	key := types.NamespacedName{Namespace: member.Workspace, Name: member.Name}
	if _, edited := c.editedRights.LoadAndDelete(key); !edited {
		return nil
	}
	for _, right := range rights {
		edited, err := c.isEdited(ctx, right)
		if err == nil && edited {
			err = kube.Ensure(ctx, c.Client, right)
		}
		if err != nil {
			c.editedRights.Store(key, true)
			return fmt.Errorf("restoring what a member may do: %w", err)
		}
	}
	return nil
}

// isEdited returns whether an object gives other rights than it should. To which Role a binding leads can never be changed.
func (c *Controller) isEdited(ctx context.Context, right client.Object) (bool, error) {
	have := kube.Whole(right)
	var given func(client.Object) any
	switch right.(type) {
	case *rbacv1.Role:
		given = func(o client.Object) any { return o.(*rbacv1.Role).Rules }
	case *rbacv1.RoleBinding:
		given = func(o client.Object) any { return o.(*rbacv1.RoleBinding).Subjects }
	default:
		return false, nil
	}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(right), have); err != nil {
		return false, client.IgnoreNotFound(err) // its deletion is an event of its own
	}
	return !equality.Semantic.DeepEqual(given(have), given(right)), nil
}
