package work

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

// foresee writes down what is about to be applied, so that an agent which dies before it can write down what it did leaves nothing that
// nobody knows of. It makes the AppliedWork if there is none.
func (c *Controller) foresee(ctx context.Context, p *pass, applied *placement.AppliedWork) (*placement.AppliedWork, error) {
	if applied == nil {
		applied = &placement.AppliedWork{
			ObjectMeta: metav1.ObjectMeta{Name: p.work.Name},
			Spec:       placement.AppliedWorkSpec{WorkName: p.work.Name, WorkNamespace: c.Namespace},
		}
		mark(applied, c.Membership)
		err := c.member.Create(ctx, applied, client.FieldOwner(fieldOwner))
		switch {
		case apierrors.IsAlreadyExists(err):
			return nil, fmt.Errorf("making AppliedWork %s, which this agent has not seen yet: %w", p.work.Name, err)
		case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), meta.IsNoMatchError(err):
			// The kind is gone, or about to go.
			c.endUnserved()
			return nil, fmt.Errorf("making AppliedWork %s: %w", p.work.Name, err)
		case err != nil:
			return nil, fmt.Errorf("making AppliedWork %s: %w", p.work.Name, err)
		}
		c.written.Store(applied)
	} else if err := c.takeOver(ctx, applied); err != nil {
		return nil, err
	}
	known := map[key]bool{}
	for _, one := range applied.Status.AppliedResources {
		known[keyOf(one.WorkResourceIdentifier)] = true
	}
	list := slices.Clone(applied.Status.AppliedResources)
	for _, m := range p.manifests {
		if m.problem == "" && m.resource.Resource != "" && !known[m.key] {
			list = append(list, placement.AppliedResource{WorkResourceIdentifier: m.identifier()})
		}
	}
	return applied, c.enter(ctx, applied, list)
}

// mark notes on an AppliedWork for which membership it is, and that what it owns stays when it is deleted without saying what becomes of
// that, as it is together with its CRD. Whoever deletes it by itself says so, the agents of Muster and KubeFleet and kubectl do, and is obeyed.
func mark(applied *placement.AppliedWork, membership types.UID) {
	if membership != "" {
		metav1.SetMetaDataLabel(&applied.ObjectMeta, naming.LabelMember, string(membership))
	}
	controllerutil.AddFinalizer(applied, metav1.FinalizerOrphanDependents)
}

// appliedFor says whether an AppliedWork is of a membership. One without a mark, of KubeFleet's agent or an earlier one of Muster's, counts by
// the namespace.
func appliedFor(applied *placement.AppliedWork, namespace string, membership types.UID) bool {
	marked := applied.Labels[naming.LabelMember]
	return applied.Spec.WorkNamespace == namespace && (marked == "" || marked == string(membership))
}

// takeOver marks an AppliedWork that is there already for this membership.
func (c *Controller) takeOver(ctx context.Context, applied *placement.AppliedWork) error {
	before := applied.DeepCopy()
	mark(applied, c.Membership)
	if equality.Semantic.DeepEqual(before.ObjectMeta, applied.ObjectMeta) {
		return nil
	}
	if err := c.member.Patch(ctx, applied, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("marking AppliedWork %s as this membership's: %w", applied.Name, err)
	}
	c.written.Store(applied)
	return nil
}

// ownerStays makes sure that an AppliedWork, as the API server has it now, is there to stay. The cache may not know yet that it is being deleted,
// and Kubernetes deletes what is owned by somebody who is gone.
func (c *Controller) ownerStays(ctx context.Context, mine owner) error {
	is, err := c.ownerOf(ctx, c.live, mine.name)
	if err == nil && (is == nil || is.UID != mine.uid || is.DeletionTimestamp != nil) {
		err = fmt.Errorf("AppliedWork %s is being deleted: waiting until it is gone", mine.name)
	}
	return err
}

// account removes what the Work no longer has and writes down what it has.
func (c *Controller) account(ctx context.Context, p *pass, applied *placement.AppliedWork) error {
	before := map[key]placement.AppliedResource{}
	for _, one := range applied.Status.AppliedResources {
		before[keyOf(one.WorkResourceIdentifier)] = one
	}
	var list []placement.AppliedResource
	for _, m := range p.manifests {
		was, known := before[m.key]
		delete(before, m.key)
		switch {
		case m.problem == "" && m.resource.Resource != "":
			uid := p.entries[m.key].as.uid
			if uid == "" {
				uid = was.UID
			}
			list = append(list, placement.AppliedResource{WorkResourceIdentifier: m.identifier(), UID: uid})
		case known:
			list = append(list, was)
		}
	}
	for _, one := range applied.Status.AppliedResources {
		if _, dropped := before[keyOf(one.WorkResourceIdentifier)]; !dropped {
			continue
		}
		left, err := c.discard(ctx, applied, one)
		if err != nil {
			return err
		}
		if left == nil {
			continue
		}
		list = append(list, one)
		p.left = append(p.left, left.text)
		if left.refused {
			p.lookAgain(c.Clock.Now().Add(refusedRetry))
		}
	}
	return c.enter(ctx, applied, list)
}

// enter writes the list of what was applied, if it is another.
func (c *Controller) enter(ctx context.Context, applied *placement.AppliedWork, list []placement.AppliedResource) error {
	before := applied.DeepCopy()
	applied.Status.AppliedResources = list
	if equality.Semantic.DeepEqual(before.Status, applied.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.member.Status().Patch(ctx, applied, patch, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("writing the status of AppliedWork %s: %w", applied.Name, err)
	}
	c.written.Store(applied)
	return nil
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
