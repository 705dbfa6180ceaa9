package work

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// An object moves from one Work of a placement to another if its Work is too large. The hub writes
// the receiving Work first. The receiving Work waits until the giving one no longer lists the
// object, then becomes its owner. The giving Work does not delete the object, but waits for the new
// owner.

// giver describes whether a Work may take over an object from its AppliedWork.
type giver int

const (
	// stranger: the Work of the AppliedWork belongs to another placement, or does not exist.
	stranger giver = iota
	// holding: the Work belongs to the same placement, and still lists the object.
	holding
	// giving: the Work belongs to the same placement, and no longer lists the object.
	giving
)

// givers returns the other AppliedWorks with an object, by UID, and whether a Work may take it
// over.
func (c *Controller) givers(ctx context.Context, to *placement.Work, object *summary) (map[types.UID]giver, error) {
	found := map[types.UID]giver{}
	for _, reference := range object.owners {
		if !isAppliedWork(reference) || reference.Name == to.Name {
			continue
		}
		from, err := c.giver(ctx, to, reference, object.key)
		if err != nil {
			return nil, err
		}
		found[reference.UID] = from
	}
	return found, nil
}

func (c *Controller) giver(ctx context.Context, to *placement.Work, reference metav1.OwnerReference, k key) (giver, error) {
	var from placement.Work
	err := c.hub.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: reference.Name}, &from, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && !samePlacement(&from, to) {
		return stranger, nil
	} else if err != nil {
		return stranger, fmt.Errorf("reading Work %s, which has applied %s: %w", reference.Name, k, err)
	}
	appliedWork, err := c.getAppliedWork(ctx, c.member, reference.Name)
	switch {
	case err != nil || appliedWork == nil || appliedWork.UID != reference.UID || !appliedFor(appliedWork, c.Namespace, c.Membership):
		return stranger, err
	case from.DeletionTimestamp == nil && lists(&from, k):
		return holding, nil
	}
	return giving, nil
}

// heirs returns the other Works of a placement by the objects in their manifests.
func (c *Controller) heirs(ctx context.Context, work *placement.Work) (map[key]string, error) {
	siblings, err := c.siblings(ctx, work)
	heirs := map[key]string{}
	for _, sibling := range siblings {
		if sibling.DeletionTimestamp != nil {
			continue
		}
		for _, m := range manifestsOf(sibling) {
			if m.problem == "" {
				heirs[m.key] = sibling.Name
			}
		}
	}
	return heirs, err
}

// siblings returns the other Works of a placement. They belong to the cache and must not be
// changed.
func (c *Controller) siblings(ctx context.Context, own *placement.Work) (siblings []*placement.Work, err error) {
	if own.Labels[placement.LabelParentCRP] == "" {
		return nil, nil
	}
	var works placement.WorkList
	err = c.hub.List(ctx, &works, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{placement.LabelParentCRP: own.Labels[placement.LabelParentCRP]})
	for i := range works.Items {
		if work := &works.Items[i]; work.Name != own.Name && samePlacement(work, own) {
			siblings = append(siblings, work)
		}
	}
	return siblings, wrap(err, "listing the Works beside %s", own.Name)
}

func samePlacement(a, b *placement.Work) bool {
	return a.Labels[placement.LabelParentCRP] != "" && a.Labels[placement.LabelParentCRP] == b.Labels[placement.LabelParentCRP] &&
		a.Labels[placement.LabelParentNamespace] == b.Labels[placement.LabelParentNamespace]
}

func lists(work *placement.Work, k key) bool {
	for _, m := range manifestsOf(work) {
		if m.problem == "" && m.key == k {
			return true
		}
	}
	return false
}
