package work

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// refusedRetry is when to try again to remove what may not be removed.
const refusedRetry = 30 * time.Second

// remnant is what is still to be removed.
type remnant struct {
	text string
	// held: it waits for somebody else. refused: the agent may not remove it.
	held, refused bool
}

// remove removes all that an AppliedWork lists, and then the AppliedWork. The agent does so itself: Kubernetes would collect what is owned,
// but learns of new kinds only every half a minute.
func (c *Controller) remove(ctx context.Context, applied *placement.AppliedWork) (Remaining, error) {
	c.kinds.use(applied.Name, resourcesOf(applied))
	now := Remaining{}
	var unseen []placement.AppliedResource
	for _, one := range slices.Backward(applied.Status.AppliedResources) {
		is, sight := c.kinds.look(labelled(resourceOf(one.WorkResourceIdentifier)), keyOf(one.WorkResourceIdentifier).NamespacedName, "")
		switch {
		case sight == absent:
			unseen = append(unseen, one)
			continue
		case sight == present && !is.ownedBy(applied.UID):
			continue
		case sight == present && is.deleting:
			now.add(remains(is))
			continue
		}
		left, err := c.discard(ctx, applied, one)
		if err != nil {
			return Remaining{}, err
		}
		now.add(left)
	}
	if now.Left > 0 {
		return now, nil
	}
	// The watches follow only what carries the agent's label, which somebody may have taken off: what they do not show is asked for once.
	for _, one := range unseen {
		left, err := c.discard(ctx, applied, one)
		if err != nil {
			return Remaining{}, err
		}
		now.add(left)
	}
	if now.Left > 0 {
		return now, nil
	}
	return now, c.delete(ctx, applied, metav1.DeletePropagationBackground)
}

// discard removes one object of an AppliedWork. It returns nil if nothing of it is left.
func (c *Controller) discard(ctx context.Context, applied *placement.AppliedWork, one placement.AppliedResource) (*remnant, error) {
	k, of := keyOf(one.WorkResourceIdentifier), c.objects.Resource(resourceOf(one.WorkResourceIdentifier)).Namespace(one.Namespace)
	object, err := of.Get(ctx, one.Name, metav1.GetOptions{})
	if err == nil {
		is := recordOf(object)
		switch {
		case !is.ownedBy(applied.UID):
			return nil, nil
		case is.deleting:
			return remains(is), nil
		case len(is.owners) > 1:
			return nil, wrap(disown(ctx, of, object, applied.UID), "letting %s go", k)
		}
		err = of.Delete(ctx, one.Name, metav1.DeleteOptions{
			PropagationPolicy: ptr.To(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: &is.uid},
		})
	}
	switch {
	case err == nil:
		c.tally.count(countRemoved)
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return &remnant{text: fmt.Sprintf("%s cannot be removed: %v", k, err), held: true, refused: true}, nil
	}
	return &remnant{text: fmt.Sprintf("%s is being deleted", k)}, wrap(err, "removing %s", k)
}

// delete deletes an AppliedWork.
func (c *Controller) delete(ctx context.Context, applied *placement.AppliedWork, propagation metav1.DeletionPropagation) error {
	if applied.DeletionTimestamp != nil {
		return nil
	}
	uid := applied.UID
	err := c.member.Delete(ctx, applied, client.PropagationPolicy(propagation), client.Preconditions{UID: &uid})
	return client.IgnoreNotFound(wrap(err, "deleting AppliedWork %s", applied.Name))
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
	return c.delete(ctx, applied, metav1.DeletePropagationOrphan)
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
func remains(is record) *remnant {
	if held := is.heldBy(); len(held) > 0 {
		return &remnant{text: fmt.Sprintf("%s waits for finalizer %s", is.key, someOf(held)), held: true}
	}
	return &remnant{text: fmt.Sprintf("%s is being deleted", is.key)}
}
