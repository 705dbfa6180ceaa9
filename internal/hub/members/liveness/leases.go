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

// maxWaiter bounds the name of a waiting agent; the agent writes the name itself.
const maxWaiter = 100

// WatchLeases returns a function that counts heartbeats while this replica leads. Every replica
// caches the Leases from the start. The cache must hold only Leases of members. A renewal before
// this replica led counts as no heartbeat, because the replica does not know its time.
func WatchLeases(ctx context.Context, leases cache.Cache, tracker *Tracker) (func(context.Context) error, error) {
	informer, err := leases.GetInformer(ctx, &coordinationv1.Lease{})
	if err != nil {
		return nil, fmt.Errorf("watching Leases: %w", err)
	}
	return func(ctx context.Context) error {
		following, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(added any) { tracker.counts(added.(*coordinationv1.Lease).Namespace) },
			UpdateFunc: func(before, after any) {
				if is := after.(*coordinationv1.Lease); tracker.counts(is.Namespace) {
					tracker.leaseChanged(before.(*coordinationv1.Lease), is)
				}
			},
			DeleteFunc: tracker.leaseGone,
		})
		if err != nil {
			return fmt.Errorf("following Leases: %w", err)
		}
		tracker.mu.Lock()
		tracker.following = following
		tracker.mu.Unlock()
		<-ctx.Done()
		return informer.RemoveEventHandler(following)
	}, nil
}

// counted holds the namespaces of counted Leases.
type counted struct {
	namespaces kube.Memory[string, bool]
	// isMember reports whether the Lease of a namespace may count; nil if every Lease may.
	isMember func(namespace string) bool
}

// Confine restricts the counted Leases to namespaces accepted by isMember. A tenant may create a
// Lease with the hub's label in a namespace of their own.
func (t *Tracker) Confine(isMember func(namespace string) bool) { t.counted.isMember = isMember }

// counts reports whether a Lease in a namespace belongs to a member, and adds the member to the
// number of Leases once.
func (t *Tracker) counts(namespace string) bool {
	if t.counted.isMember != nil && !t.counted.isMember(namespace) {
		return false
	}
	if t.counted.namespaces.Add(namespace, true) {
		t.leases.Add(1)
	}
	return true
}

// leaseChanged notes a heartbeat if the agent renewed the Lease. It also notes the annotation of an
// agent waiting for the holder.
func (t *Tracker) leaseChanged(was, is *coordinationv1.Lease) {
	if is.Spec.RenewTime != nil && !is.Spec.RenewTime.Equal(was.Spec.RenewTime) {
		t.Beat(is.Namespace, InLease, is.Spec.RenewTime.Time)
	}
	if mark := is.Annotations[clusterv1beta1.AnnotationWaitingAgent]; mark != "" &&
		mark != was.Annotations[clusterv1beta1.AnnotationWaitingAgent] {
		waiter, _, _ := strings.Cut(mark, " ")
		t.Waits(is.Namespace, kube.Clip(waiter, maxWaiter), kube.Clip(ptr.Deref(is.Spec.HolderIdentity, ""), maxWaiter))
	}
}

// leaseGone drops the member of a deleted Lease. If the member still exists, its controller creates
// another Lease and tracks it again.
func (t *Tracker) leaseGone(o any) {
	if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	namespace := o.(*coordinationv1.Lease).Namespace
	if _, known := t.counted.namespaces.Take(namespace); known {
		t.leases.Add(-1)
	}
	t.Forget(namespace)
}
