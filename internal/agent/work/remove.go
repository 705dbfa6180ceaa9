package work

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// remove deletes an AppliedWork. With foreground propagation it stays until all that it owns is gone.
func (c *Controller) remove(ctx context.Context, applied *placement.AppliedWork, propagation metav1.DeletionPropagation) error {
	if applied.DeletionTimestamp != nil {
		return nil
	}
	uid := applied.UID
	err := c.member.Delete(ctx, applied, client.PropagationPolicy(propagation), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting AppliedWork %s: %w", applied.Name, err)
	}
	return nil
}

// abandon takes the mark of ownership off everything that an AppliedWork owns, and deletes just the AppliedWork.
func (c *Controller) abandon(ctx context.Context, applied *placement.AppliedWork) error {
	for _, one := range applied.Status.AppliedResources {
		of := c.objects.Resource(resourceOf(one.WorkResourceIdentifier)).Namespace(one.Namespace)
		object, err := of.Get(ctx, one.Name, metav1.GetOptions{})
		if err == nil {
			err = disown(ctx, of, object, applied.UID)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("letting %s go: %w", keyOf(one.WorkResourceIdentifier), err)
		}
	}
	return c.remove(ctx, applied, metav1.DeletePropagationOrphan)
}

// disown takes one owner off an object, and the agent's marks if no other Work has applied it.
func disown(ctx context.Context, of dynamic.ResourceInterface, object *unstructured.Unstructured, uid types.UID) error {
	is := recordOf(object)
	if !is.ownedBy(uid) {
		return nil
	}
	others := slices.DeleteFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == uid })
	metadata := map[string]any{"resourceVersion": object.GetResourceVersion(), "ownerReferences": others}
	if !slices.ContainsFunc(others, isAppliedWork) {
		metadata["labels"] = map[string]any{labelWork: nil}
		metadata["annotations"] = map[string]any{annotationHash: nil}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = of.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldOwner})
	return err
}

// remains says of an object that is being deleted what it waits for.
func remains(is record) string {
	if held := is.heldBy(); len(held) > 0 {
		return fmt.Sprintf("%s waits for finalizer %s", is.key, someOf(held))
	}
	return fmt.Sprintf("%s is being deleted", is.key)
}
