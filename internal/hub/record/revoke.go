package record

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/membership"
	"github.com/muster-fleet/muster/internal/kube"
)

// revoke begins another epoch of a revoked record, and then ends what the member had in the one before. That goes on until the old namespace is gone,
// also if the revocation is taken back meanwhile.
func (c *Controller) revoke(ctx context.Context, record client.Object) error {
	var reader client.Reader = c.Client
	if membership.Revoked(record) {
		begun, err := c.beginEpoch(ctx, record)
		if err != nil {
			return err
		}
		if begun {
			reader = c.Live // the cache may not have the namespace yet
		}
	}
	former, ok := membership.Former(record)
	if !ok {
		return nil
	}
	state, _, err := former.ObserveNamespace(ctx, reader)
	if err != nil || state == membership.NamespaceAbsent || state == membership.NamespaceTaken {
		return err
	}
	c.Liveness.Forget(former.Namespace)
	if err := former.EndAccess(ctx, c.Client, c.Live); err != nil {
		return err
	}
	if err := former.DeleteNamespace(ctx, c.Client, c.Live); err != nil {
		return err
	}
	return former.Release(ctx, c.Client, c.Live)
}

// beginEpoch has the member of a revoked record use another namespace from now on, if it may have used the present one, and says whether. The epoch is
// written before anything is deleted, so that a hub that is killed in between goes on with the same namespace.
func (c *Controller) beginEpoch(ctx context.Context, record client.Object) (bool, error) {
	member := membership.Of(record)
	state, _, err := member.ObserveNamespace(ctx, c.Live)
	if err != nil {
		return false, err
	}
	cluster, _ := record.(*fleet.Cluster)
	shown := cluster != nil && cluster.Status.Namespace == member.Namespace // the namespace may have been deleted by somebody else
	if state == membership.NamespaceTaken || state == membership.NamespaceAbsent && !shown {
		return false, nil
	}
	before := kube.Whole(record)
	membership.BeginEpoch(record)
	if err := kube.Patch(ctx, c.Client, before, record); err != nil {
		return false, fmt.Errorf("revoking %s: %w", kube.Describe(c.Client.Scheme(), record), err)
	}
	ctrl.LoggerFrom(ctx).Info("Member revoked", "namespace", member.Namespace, "epoch", membership.Epoch(record))
	return true, nil
}
