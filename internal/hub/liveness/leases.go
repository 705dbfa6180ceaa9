package liveness

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// WatchLeases records a beat for every Lease whose renewal changes in the cache, which must hold only Leases of members.
func WatchLeases(ctx context.Context, leases cache.Cache, tracker *Tracker) error {
	informer, err := leases.GetInformer(ctx, &coordinationv1.Lease{})
	if err != nil {
		return fmt.Errorf("watching Leases: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			was, is := before.(*coordinationv1.Lease), after.(*coordinationv1.Lease)
			if is.Spec.RenewTime != nil && !is.Spec.RenewTime.Equal(was.Spec.RenewTime) {
				tracker.Beat(is.Namespace, InLease, is.Spec.RenewTime.Time)
			}
		},
	})
	return err
}
