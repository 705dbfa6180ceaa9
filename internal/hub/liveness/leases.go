package liveness

import (
	"context"
	"fmt"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/kube"
)

// maxWaiter bounds the name of an agent that waits, which it writes itself.
const maxWaiter = 100

// WatchLeases records a beat for every Lease whose renewal changes in the cache, which must hold only Leases of members, and each time that an agent notes
// on one that it waits for the holder.
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
			if mark := is.Annotations[clusterv1beta1.AnnotationWaitingAgent]; mark != "" && mark != was.Annotations[clusterv1beta1.AnnotationWaitingAgent] {
				waiter, _, _ := strings.Cut(mark, " ")
				tracker.Waits(is.Namespace, kube.Clip(waiter, maxWaiter), kube.Clip(ptr.Deref(is.Spec.HolderIdentity, ""), maxWaiter))
			}
		},
	})
	return err
}
