package placement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

// byBinding is the cache index of bindings by placement.
const byBinding = "binding"

// bindingRetry is the wait after a failed write of bindings.
const bindingRetry = time.Minute

// errBindingUnseen reports that the cache lacks a binding written by this hub.
var errBindingUnseen = errors.New("the cache does not have the binding yet")

// indexBindings adds the index to the cache.
func indexBindings(ctx context.Context, mgr ctrl.Manager) error {
	for _, kind := range []client.Object{&placement.ClusterResourceBinding{}, &placement.ResourceBinding{}} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind, byBinding, indexKey(boundBy)); err != nil {
			return fmt.Errorf("indexing %T by their placement: %w", kind, err)
		}
	}
	return nil
}

// boundBy returns the placement of a binding.
func boundBy(o metav1.Object) (types.NamespacedName, bool) {
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[placement.LabelParentCRP]}
	return key, key.Name != ""
}

// onBinding wakes the placement of a deleted binding. The hub's own changes trigger nothing.
func (c *Controller) onBinding(_ context.Context, gone, _ client.Object, q controller.Queue) {
	if key, ok := boundBy(gone); ok {
		c.enqueueSoon(q, key)
	}
}

// currentBindings returns the bindings labelled with a placement, by their own names.
func (c *Controller) currentBindings(ctx context.Context, s genericPlacement) (map[string]binding, error) {
	list := client.ObjectList(&placement.ClusterResourceBindingList{})
	if s.kind == kindRP {
		list = &placement.ResourceBindingList{}
	}
	if err := c.Client.List(ctx, list, client.MatchingFields{byBinding: s.key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the bindings of %s: %w", s, err)
	}
	all := map[string]binding{}
	err := meta.EachListItem(list, func(o runtime.Object) error {
		b := ofBinding(o.(client.Object))
		all[b.GetName()] = b
		return nil
	})
	return all, err
}

// writeBindings writes the differences in the bindings of a placement, for several members at a
// time. Bindings of another hub stay unchanged. It returns the wait until the cache shows earlier
// writes.
func (c *Controller) writeBindings(ctx context.Context, s genericPlacement, want map[string]binding) (wait time.Duration, err error) {
	have, err := c.currentBindings(ctx, s)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	var failed []error
	limit := make(chan struct{}, writers)
	do := func(write func() error) {
		limit <- struct{}{}
		group.Go(func() {
			defer func() { <-limit }()
			err := write()
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, errBindingUnseen) {
				wait = statusPeriod
			} else if err != nil && len(failed) < maxListed { // of ten thousand members all may fail
				failed = append(failed, err)
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if old, exists := have[name]; !exists || metav1.IsControlledBy(old, s) && !old.shows(want[name]) {
			do(func() error { return c.writeBinding(ctx, s, old, want[name]) })
		}
	}
	for name, old := range have {
		if _, wanted := want[name]; !wanted && metav1.IsControlledBy(old, s) && old.GetDeletionTimestamp() == nil {
			do(func() error { return kube.DeleteByUID(ctx, c.Client, old.copy().Object) })
		}
	}
	group.Wait()
	return wait, errors.Join(failed...)
}

// shows reports whether a binding has the contents of another one, regardless of times.
func (b binding) shows(want binding) bool {
	return b.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(b.spec, want.spec) && b.saysOf(want)
}

// saysOf reports whether a binding has the conditions of another one, for its own generation.
func (b binding) saysOf(want binding) bool {
	return want.pending || slices.EqualFunc(b.status.Conditions, want.status.Conditions, func(is, should metav1.Condition) bool {
		return is.ObservedGeneration == b.GetGeneration() && is.Type == should.Type && is.Status == should.Status &&
			is.Reason == should.Reason && is.Message == should.Message
	})
}

// writeBinding creates a binding, or writes the differences to the existing one. The hub is the
// only writer, so a patch need not fail if the cache is behind.
func (c *Controller) writeBinding(ctx context.Context, s genericPlacement, old, want binding) error {
	failed := func(err error) error { return fmt.Errorf("writing binding %s of %s: %w", want.GetName(), s, err) }
	now := want.copy()
	switch {
	case old.Object == nil:
		now.status.Conditions = nil
		if err := c.Client.Create(ctx, now.Object, kube.FieldOwner); apierrors.IsAlreadyExists(err) {
			return c.unseen(ctx, s, want)
		} else if err != nil {
			return failed(err)
		}
	case equality.Semantic.DeepEqual(old.spec, want.spec):
		now = old.copy()
	default:
		if err := c.patchBinding(ctx, c.Client.Patch, old, now, map[string]any{"spec": want.spec}); err != nil {
			return failed(err)
		}
	}
	if now.saysOf(want) {
		return nil
	}
	var conditions []metav1.Condition
	for _, condition := range want.status.Conditions {
		condition.ObservedGeneration, condition.LastTransitionTime = now.GetGeneration(), metav1.NewTime(c.Clock.Now())
		if was := meta.FindStatusCondition(now.status.Conditions, condition.Type); was != nil && was.Status == condition.Status {
			condition.LastTransitionTime = was.LastTransitionTime
		}
		conditions = append(conditions, condition)
	}
	patch := map[string]any{"status": map[string]any{"conditions": conditions}}
	status := func(ctx context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
		return c.Client.Status().Patch(ctx, o, patch, kube.FieldOwner)
	}
	if err := c.patchBinding(ctx, status, now, now, patch); err != nil {
		return failed(err)
	}
	return nil
}

// patchBinding writes a part of a binding, unless the binding is gone or was created again.
func (c *Controller) patchBinding(ctx context.Context,
	write func(context.Context, client.Object, client.Patch, ...client.PatchOption) error,
	old, to binding, part map[string]any) error {
	part["metadata"] = map[string]any{"uid": old.GetUID()}
	patch, err := json.Marshal(part)
	if err != nil {
		return err
	}
	err = write(ctx, to.Object, client.RawPatch(types.MergePatchType, patch), kube.FieldOwner)
	return client.IgnoreNotFound(err)
}

// unseen returns errBindingUnseen if the placement has a binding missing in the cache. It returns
// nil if the binding belongs to another owner, and leaves it alone.
func (c *Controller) unseen(ctx context.Context, s genericPlacement, want binding) error {
	there := want.copy()
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(want), there.Object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if metav1.IsControlledBy(there, s) {
		return errBindingUnseen
	}
	return nil
}
