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
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/removal"
)

// remove deletes the objects listed in an AppliedWork, and then the AppliedWork. The garbage
// collector of Kubernetes would do the same, but discovers new kinds only every 30 seconds. An
// object with an heir is left to the heir.
func (c *Controller) remove(ctx context.Context, appliedWork *placement.AppliedWork, heirs map[key]string) (applied.Remaining, error) {
	c.watcher.Use(appliedWork.Name, resourcesOf(appliedWork))
	now := applied.Remaining{}
	var unseen []placement.AppliedResource
	for _, one := range slices.Backward(appliedWork.Status.AppliedResources) {
		object, sight := c.watcher.Get(ofKind(resourceOf(one.WorkResourceIdentifier)), keyOf(one.WorkResourceIdentifier).NamespacedName, "")
		switch {
		case sight == applied.Absent:
			unseen = append(unseen, one)
			continue
		case sight == applied.Present && !object.of(appliedWork):
			continue
		case sight == applied.Present && object.deleting:
			now.Add(remaining(object))
			continue
		}
		left, err := c.deleteObject(ctx, appliedWork, one, heirs)
		if err != nil {
			return applied.Remaining{}, err
		}
		now.Add(left)
	}
	if now.Left > 0 {
		return now, nil
	}
	// A user may have removed the label of the watches, so each unseen object is read once.
	for _, one := range unseen {
		left, err := c.deleteObject(ctx, appliedWork, one, heirs)
		if err != nil {
			return applied.Remaining{}, err
		}
		now.Add(left)
	}
	if now.Left > 0 {
		return now, nil
	}
	return now, c.delete(ctx, appliedWork, metav1.DeletePropagationBackground)
}

// deleteObject deletes one object of an AppliedWork, unless it has an heir. It returns the rest.
func (c *Controller) deleteObject(
	ctx context.Context, appliedWork *placement.AppliedWork, one placement.AppliedResource, heirs map[key]string,
) (applied.Remaining, error) {
	k, objects := keyOf(one.WorkResourceIdentifier), c.objects.Resource(resourceOf(one.WorkResourceIdentifier)).Namespace(one.Namespace)
	object, err := objects.Get(ctx, one.Name, metav1.GetOptions{})
	if err == nil {
		found := summarize(object)
		switch {
		case !found.of(appliedWork):
			return applied.Remaining{}, nil
		case found.deleting:
			return remaining(found), nil
		case heirs[k] != "" && !slices.Contains(found.works(), heirs[k]):
			c.tracker.give(heirs[k], k)
			return applied.Remaining{Left: 1, Held: []string{fmt.Sprintf("%s is handed over to Work %s", k, heirs[k])}, Retry: true}, nil
		case len(found.owners) > 1, found.stays != goes:
			return applied.Remaining{}, wrap(removeOwner(ctx, objects, object, appliedWork.UID), "letting %s go", k)
		}
		err = removal.Delete(ctx, removal.Of(objects), object, removal.WorkGone)
	}
	switch {
	case err == nil:
		c.counts.count(countRemoved)
	case apierrors.IsNotFound(err):
		return applied.Remaining{}, nil
	case apierrors.IsForbidden(err):
		return applied.Remaining{Left: 1, Held: []string{fmt.Sprintf("%s cannot be removed: %v", k, err)}, Retry: true}, nil
	}
	return applied.Remaining{Left: 1}, wrap(err, "removing %s", k)
}

// delete deletes an AppliedWork.
func (c *Controller) delete(ctx context.Context, appliedWork *placement.AppliedWork, propagation metav1.DeletionPropagation) error {
	if appliedWork.DeletionTimestamp != nil {
		return nil
	}
	uid := appliedWork.UID
	err := c.member.Delete(ctx, appliedWork, client.PropagationPolicy(propagation), client.Preconditions{UID: &uid})
	return client.IgnoreNotFound(wrap(err, "deleting AppliedWork %s", appliedWork.Name))
}

// abandon removes the AppliedWork from the owners of its objects, and then deletes it.
func (c *Controller) abandon(ctx context.Context, appliedWork *placement.AppliedWork) error {
	for _, one := range appliedWork.Status.AppliedResources {
		of := c.objects.Resource(resourceOf(one.WorkResourceIdentifier)).Namespace(one.Namespace)
		object, err := of.Get(ctx, one.Name, metav1.GetOptions{})
		if err == nil {
			err = removeOwner(ctx, of, object, appliedWork.UID)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("letting %s go: %w", keyOf(one.WorkResourceIdentifier), err)
		}
	}
	return c.delete(ctx, appliedWork, metav1.DeletePropagationOrphan)
}

// removeOwner removes an owner from an object, and the agent's label and annotations if no other
// Work applied the object.
func removeOwner(ctx context.Context, objects dynamic.ResourceInterface, object *unstructured.Unstructured, uid types.UID) error {
	found := summarize(object)
	if !found.ownedBy(uid) {
		return nil
	}
	others := slices.DeleteFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == uid })
	metadata := map[string]any{"resourceVersion": object.GetResourceVersion(), "ownerReferences": others}
	if !slices.ContainsFunc(others, isAppliedWork) {
		metadata["labels"] = map[string]any{labelWork: nil}
		metadata["annotations"] = map[string]any{annotationHash: nil, annotationTakenOver: nil}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = objects.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldOwner})
	return err
}

// remaining describes an object in deletion.
func remaining(is summary) applied.Remaining {
	left := applied.Remaining{Left: 1}
	if len(is.finalizers) > 0 {
		left.Held = []string{fmt.Sprintf("%s waits for finalizer %s", is.key, applied.Join(is.finalizers))}
	}
	return left
}
