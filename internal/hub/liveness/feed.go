package liveness

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// Feed tells the judge of every Lease whose renewal the hub sees change. The cache must hold only Leases of members.
func Feed(ctx context.Context, leases cache.Cache, judge *Judge) error {
	informer, err := leases.GetInformer(ctx, &coordinationv1.Lease{})
	if err != nil {
		return fmt.Errorf("watching Leases: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			was, is := before.(*coordinationv1.Lease), after.(*coordinationv1.Lease)
			if is.Spec.RenewTime != nil && !is.Spec.RenewTime.Equal(was.Spec.RenewTime) {
				judge.Beat(is.Namespace, is.Spec.RenewTime.Time)
			}
		},
	})
	return err
}
