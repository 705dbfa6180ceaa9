package placement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/kube"
)

// failures are errors by member namespace.
type failures map[string]error

func (f failures) join() error { return errors.Join(slices.Collect(maps.Values(f))...) }

// isGone reports whether a cached placement no longer exists. It checks this only before a member
// gets its first Work. After a restore the cache of Works may be ahead of the cache of
// placements. A new Work would be deleted a moment later. Its agent would take this for the
// deletion of the workload it has had all along.
func (c *Controller) isGone(ctx context.Context, s genericPlacement, o observed, d decision) (bool, error) {
	if !slices.ContainsFunc(d.plan.write, func(t target) bool {
		return o.current[t.namespace] == nil || len(o.current[t.namespace].works) == 0
	}) {
		return false, nil
	}
	return kube.IsGone(ctx, c.Live, placement.GroupVersion.WithKind(s.kind), s)
}

// act writes and deletes Works, for several members at a time.
func (c *Controller) act(ctx context.Context, s genericPlacement, o observed, d decision) failures {
	var mu sync.Mutex
	var group sync.WaitGroup
	failed, limit := failures{}, make(chan struct{}, writers)
	each := func(targets []target, do func(target, *currentWorks) error) {
		for _, t := range targets {
			limit <- struct{}{}
			group.Go(func() {
				defer func() { <-limit }()
				if err := do(t, o.current[t.namespace]); err != nil {
					mu.Lock()
					failed[t.namespace] = err
					mu.Unlock()
				}
			})
		}
	}
	each(d.plan.recreate, func(t target, current *currentWorks) error {
		return c.releaseRetained(ctx, current.retained(s.key, d.desiredFor(t.namespace)))
	})
	each(d.plan.write, func(t target, current *currentWorks) error {
		desired, err := o.complete(d, t.namespace)
		if err != nil {
			return err
		}
		return c.writeWorks(ctx, s, desired, t, current)
	})
	each(o.unlabelled(), func(t target, current *currentWorks) error {
		return c.labelWorks(ctx, t, current.unlabelled(t.name, t.epoch))
	})
	each(d.plan.remove, func(_ target, current *currentWorks) error {
		return c.deleteWorks(ctx, current.works, cmp.Or(d.plan.cause, removal.NotPicked))
	})
	group.Wait()
	c.countResults(d.plan, failed)
	if len(d.plan.write)+len(d.plan.remove) > 0 {
		ctrl.LoggerFrom(ctx).Info("Placement written to members", "resources", len(o.selected.Objects), "resourceIndex", d.desired.index,
			"written", listNames(d.plan.write), "removed", listNames(d.plan.remove), "failed", len(failed))
	}
	return failed
}

// unlabelled returns the members with Works without the labels of their recipient.
func (o observed) unlabelled() (all []target) {
	for _, m := range o.members {
		if current := o.current[m.Namespace]; current != nil && len(current.unlabelled(m.Name, m.Epoch)) > 0 {
			all = append(all, target{name: m.Name, namespace: m.Namespace, epoch: m.Epoch})
		}
	}
	return all
}

// writeWorks writes the differences between the current and the desired Works of one member. A
// moved object goes to a later Work. The later Work is therefore written before the earlier one.
func (c *Controller) writeWorks(ctx context.Context, s genericPlacement, desired desiredWorks, t target, current *currentWorks) error {
	outdated, surplus := current.diff(s.key, desired)
	if len(outdated) > 0 {
		if err := c.checkNamespace(ctx, t); err != nil {
			return err
		}
	}
	for _, i := range slices.Backward(outdated) {
		work := desired.work(s.key, i, t)
		work.Labels[placement.LabelParentBinding] = current.binding(s.key, t.name, t.namespace)
		if err := c.writeWork(ctx, s, work, current.find(work.Name)); err != nil {
			return err
		}
		c.workWrites.Expect(s.key, work)
	}
	return c.deleteWorks(ctx, surplus, removal.NothingLeft)
}

// writeWork creates a Work, or replaces the existing one.
func (c *Controller) writeWork(ctx context.Context, s genericPlacement, want, have *placement.Work) error {
	failed := func(err error) error { return fmt.Errorf("writing Work %s/%s: %w", want.Namespace, want.Name, err) }
	if have == nil {
		err := c.Client.Create(ctx, want, kube.FieldOwner)
		if err == nil {
			return nil
		} else if !apierrors.IsAlreadyExists(err) {
			return failed(err)
		}
		have = &placement.Work{}
		if err := c.Live.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
			return fmt.Errorf("reading Work %s/%s: %w", want.Namespace, want.Name, err)
		}
		if of, ok := parentOf(have); (!ok || of != s.key) && !relabelled(have) {
			return fmt.Errorf("namespace %s has a Work %s that is not of %s: delete it, or give the placement another name",
				want.Namespace, want.Name, s)
		}
	}
	patch, err := replacement(have, want)
	if err == nil {
		err = c.Client.Patch(ctx, want, client.RawPatch(types.JSONPatchType, patch), kube.FieldOwner)
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

// checkNamespace returns an error if the namespace of a member is missing or belongs to another
// one. It reads the API server if the cache lacks the namespace.
func (c *Controller) checkNamespace(ctx context.Context, t target) error {
	var member membernamespace.Member
	if workspace, name, isCluster := strings.Cut(t.name, "/"); isCluster {
		var cluster fleet.Cluster
		if err := c.Client.Get(ctx, types.NamespacedName{Namespace: workspace, Name: name}, &cluster); err != nil {
			return fmt.Errorf("reading Cluster %s: %w", t.name, err)
		}
		member = membernamespace.OfCluster(&cluster)
	} else {
		var mc clusterv1beta1.MemberCluster
		if err := c.Client.Get(ctx, types.NamespacedName{Name: t.name}, &mc); err != nil {
			return fmt.Errorf("reading MemberCluster %s: %w", t.name, err)
		}
		member = membernamespace.OfMemberCluster(&mc)
	}
	for _, reader := range []client.Reader{c.Client, c.Live} {
		state, _, err := member.ObserveNamespace(ctx, reader)
		if err != nil || state == membernamespace.NamespaceOurs {
			return err
		}
	}
	return fmt.Errorf("namespace %s is missing, is being deleted or was not created for %s: the hub writes nothing to it; for the "+
		"remedy, read the conditions of the member", member.Namespace, t.name)
}

// labelWorks sets the labels of their recipient on Works.
func (c *Controller) labelWorks(ctx context.Context, t target, works []*placement.Work) error {
	for _, work := range works {
		labelled := map[string]any{"uid": work.UID, "labels": delivery.RecipientLabels(t.name, t.epoch)}
		if err := removal.PatchWork(ctx, c.Client, work, labelled); err != nil {
			return err
		}
	}
	return nil
}

// releaseRetained removes the agent's finalizer from Works deleted by another client. The Works
// go, their objects stay on the member, and the Works are written again.
func (c *Controller) releaseRetained(ctx context.Context, works []*placement.Work) error {
	for _, work := range works {
		if err := c.removeAgentFinalizer(ctx, work); err != nil {
			return fmt.Errorf("taking the finalizer off Work %s/%s, which was deleted, to write it again: %w", work.Namespace, work.Name, err)
		}
		ctrl.LoggerFrom(ctx).Info("Deleted Work written again", "work", work.Name, "namespace", work.Namespace)
	}
	return nil
}

func (c *Controller) removeAgentFinalizer(ctx context.Context, work *placement.Work) error {
	after := work.DeepCopy()
	if !controllerutil.RemoveFinalizer(after, placement.FinalizerWork) {
		return nil
	}
	return client.IgnoreNotFound(kube.Patch(ctx, c.Client, work, after))
}

// deleteWorks deletes Works. Each is gone after the member's agent has deleted its objects.
func (c *Controller) deleteWorks(ctx context.Context, works []*placement.Work, cause removal.Cause) error {
	for _, work := range works {
		if err := removal.DeleteWork(ctx, c.Client, work, cause); err != nil {
			return err
		}
	}
	return nil
}
