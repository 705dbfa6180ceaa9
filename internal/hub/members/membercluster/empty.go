package membercluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/members/liveness"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// namedWorks is the number of Works named in the progress of a leaving member.
	namedWorks = 3
	// emptyingPeriod is the interval between checks of a member with many Works to remove.
	emptyingPeriod = time.Second
)

// emptiedByWorks reports whether the hub deletes the Works of a leaving member before it requests
// the agent to leave. Muster's agent removes its resources by itself. KubeFleet's agent removes
// only the resources of deleted Works, and only before the request to leave.
func (o observed) emptiedByWorks() bool {
	return !o.Deleted.IsZero() && o.LeavePolicy == clusterv1beta1.LeaveDelete && o.NamespaceState == membernamespace.NamespaceOurs &&
		o.Seen() && o.Report != nil && o.Report.Spec.State != clusterv1beta1.ClusterStateLeave &&
		o.Report.Status.AgentVersion == "" && o.Liveness.Source != liveness.InLease
}

// emptying returns a message about the Works to remove before the request to leave; "" if there are
// none.
func (o observed) emptying() string {
	if len(o.works) == 0 {
		return ""
	}
	var names []string
	for _, work := range o.works {
		names = append(names, work.Name)
	}
	slices.Sort(names)
	return fmt.Sprintf("waiting for the member agent to remove the objects of %d Works (%s)",
		len(names), kube.JoinNames(names[:min(namedWorks, len(names))], len(names)))
}

// observeWorks reads the Works to remove by the agent. If the cache has none, observeWorks queries
// the API server, because the cache may lag behind a new Work.
func (r *reconciliation) observeWorks(ctx context.Context) (err error) {
	o := &r.o
	if !o.emptiedByWorks() {
		return nil
	}
	if o.worksDefinition, err = r.Kinds.Deleted(ctx, &placement.Work{}); err != nil || o.worksDefinition != "" {
		return err
	}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		var works placement.WorkList
		if err := reader.List(ctx, &works, client.InNamespace(o.Namespace)); err != nil {
			return fmt.Errorf("listing the Works of %s: %w", o.Namespace, err)
		}
		for i := range works.Items {
			o.works = append(o.works, &works.Items[i])
		}
		if len(o.works) > 0 {
			return nil
		}
	}
	return nil
}

// deleteWorks deletes the Works of the member. The agent keeps its rights and continues.
func (r *reconciliation) deleteWorks(ctx context.Context) error {
	if err := r.ask(ctx, &r.o, r.o.Report.Spec); err != nil {
		return err
	}
	confirmed, err := r.IsToBeEmptied(ctx, r.mc)
	if err != nil || !confirmed {
		return err
	}
	var failed []error
	for _, work := range r.o.works {
		failed = append(failed, removal.DeleteWork(ctx, r.Client, work, removal.MemberLeaves))
	}
	return errors.Join(failed...)
}

// onWork enqueues a leaving MemberCluster after the deletion or a late creation of one of its
// Works.
func (c *Controller) onWork(ctx context.Context, before, after *placement.Work, q controller.Queue) {
	work := after
	switch {
	case after == nil:
		work = before
	case before != nil:
		return
	}
	namespace := kube.CoreMetadata("Namespace")
	namespace.Name = work.Namespace
	for _, request := range c.ofNamespace(ctx, namespace) {
		var mc clusterv1beta1.MemberCluster
		err := c.Client.Get(ctx, request.NamespacedName, &mc, client.UnsafeDisableDeepCopy)
		if err != nil || mc.DeletionTimestamp == nil {
			continue
		}
		c.enqueueEmptying(ctx, work.Namespace, request, q)
	}
}

// enqueueEmptying enqueues a member at once when its last Work is gone, else with a delay. Many
// deleted Works then do not cost a write of the status each.
func (c *Controller) enqueueEmptying(ctx context.Context, namespace string, request reconcile.Request, q controller.Queue) {
	var left placement.WorkList
	err := c.Client.List(ctx, &left, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if err == nil && len(left.Items) > 0 {
		q.AddAfter(request, emptyingPeriod)
		return
	}
	q.Add(request)
}
