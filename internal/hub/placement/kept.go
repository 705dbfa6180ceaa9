package placement

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/kube"
)

// worksDefinition is the name of the CustomResourceDefinition of Works.
const worksDefinition = "works.placement.kubernetes-fleet.io"

// reportKept reports that a placement and its Works stay unchanged during the deletion of a
// CustomResourceDefinition. Without a name it does nothing.
func (c *Controller) reportKept(ctx context.Context, s genericPlacement, definition string) error {
	if definition == "" {
		return nil
	}
	return c.patchMessage(ctx, s, servedkinds.Kept(definition))
}

// worksDefinitionDeleted returns the definition of Works if its deletion deletes the Works of a
// placement, and else "".
func (c *Controller) worksDefinitionDeleted(ctx context.Context, s genericPlacement, current map[string]*currentWorks) (string, error) {
	suspicious := len(current) == 0 && len(scheduledMembers(s.status)) > 0
	for _, w := range current {
		suspicious = suspicious || w.deleting
	}
	if !suspicious {
		return "", nil
	}
	return c.Kinds.Deleted(ctx, &placement.Work{})
}

// inputDefinitionDeleted returns the definition of envelopes or overrides if its deletion removed
// inputs of the current Works, and else "".
func (c *Controller) inputDefinitionDeleted(ctx context.Context, o observed, d decision) (string, error) {
	if kinds := missingInputs(o, d); len(kinds) > 0 {
		return c.Kinds.Deleted(ctx, kinds...)
	}
	return "", nil
}

// missingInputs returns the kinds of missing objects that the current Works depend on.
func missingInputs(o observed, d decision) (kinds []client.Object) {
	for _, r := range o.before.SelectedResources {
		isEnvelope := r.Group == placement.GroupVersion.Group && (d.problem == (condition{}) || d.problem == o.unfounded)
		found := func(s *unstructured.Unstructured) bool {
			return s.GetKind() == r.Kind && s.GetNamespace() == r.Namespace && s.GetName() == r.Name
		}
		if isEnvelope && !slices.ContainsFunc(o.selected.Objects, found) {
			kinds = append(kinds, &placement.ResourceEnvelope{}, &placement.ClusterResourceEnvelope{})
			break
		}
	}
	for namespace, w := range o.current {
		changed := func(work *placement.Work) bool {
			overridden := work.Annotations[placement.AnnotationClusterOverrides]+work.Annotations[placement.AnnotationOverrides] != ""
			return overridden && !d.desiredFor(namespace).overriddenAs(work)
		}
		if slices.ContainsFunc(w.works, changed) {
			return append(kinds, &placement.ClusterResourceOverride{}, &placement.ResourceOverride{})
		}
	}
	return kinds
}

// registerRelease adds the controller that removes the agents' finalizers from Works during the
// deletion of their definition. Agents then delete nothing. A definition could otherwise wait
// forever for its Works, and never be installed again.
func (c *Controller) registerRelease(mgr ctrl.Manager) error {
	enqueue := func(q controller.Queue, work *placement.Work) {
		if work != nil && work.DeletionTimestamp != nil && slices.Contains(work.Finalizers, placement.FinalizerWork) {
			q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(work)})
		}
	}
	onWork := func(_ context.Context, _, work *placement.Work, q controller.Queue) { enqueue(q, work) }
	onDefinition := func(ctx context.Context, _, definition *metav1.PartialObjectMetadata, q controller.Queue) {
		if definition == nil || definition.Name != worksDefinition || definition.DeletionTimestamp == nil {
			return
		}
		var works placement.WorkList
		if err := c.Client.List(ctx, &works, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to list the Works of a definition in deletion")
		}
		for i := range works.Items {
			enqueue(q, &works.Items[i])
		}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("work-release").
		Watches(&placement.Work{}, controller.On(onWork)).
		Watches(kube.Metadata(servedkinds.DefinitionKind), controller.On(onDefinition)).
		Complete(controller.RetryConflicts(c.Recorder, reconcile.Func(c.release)))
}

// release removes the agent's finalizer from a Work, if the API server confirms the deletion of the
// definition.
func (c *Controller) release(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	definition := kube.Metadata(servedkinds.DefinitionKind)
	if err := c.Client.Get(ctx, types.NamespacedName{Name: worksDefinition}, definition); err != nil || definition.DeletionTimestamp == nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // the event of its deletion enqueues all Works
	}
	var work placement.Work
	if err := c.Client.Get(ctx, request.NamespacedName, &work); err != nil || work.DeletionTimestamp == nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if deleted, err := c.Kinds.Deleted(ctx, &work); err != nil || deleted == "" {
		return ctrl.Result{}, err
	}
	if err := c.removeAgentFinalizer(ctx, &work); err != nil {
		return ctrl.Result{}, fmt.Errorf("removing the finalizer of Work %s, whose definition is being deleted: %w", request, err)
	}
	return ctrl.Result{}, nil
}
