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
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/naming"
)

// writeAhead lists the objects in the AppliedWork before they are applied. An agent killed half-way
// therefore leaves no unlisted object. writeAhead creates a missing AppliedWork.
func (c *Controller) writeAhead(ctx context.Context, p *pass, appliedWork *placement.AppliedWork) (*placement.AppliedWork, error) {
	created := appliedWork == nil
	if created {
		var err error
		if appliedWork, err = c.createAppliedWork(ctx, p.work.Name); err != nil {
			return nil, err
		}
	}
	list, kept := c.ofThisMembership(p, appliedWork)
	if err := c.noteKept(ctx, appliedWork, kept); err != nil {
		return nil, err
	}
	listed := map[key]bool{}
	for _, one := range list {
		listed[keyOf(one.WorkResourceIdentifier)] = true
	}
	for _, m := range p.manifests {
		if m.problem == "" && m.resource.Resource != "" && !listed[m.key] {
			list = append(list, placement.AppliedResource{WorkResourceIdentifier: m.identifier()})
		}
	}
	// The mark comes last: a process that is killed in between compares the memberships again.
	if err := c.writeResources(ctx, appliedWork, list); err != nil || created {
		return appliedWork, err
	}
	return appliedWork, c.adopt(ctx, appliedWork)
}

// ofThisMembership returns the list of an AppliedWork without the objects of an earlier membership
// that the Work lacks. After the loss of a hub, another hub has another report. Its first Work may
// lack an object only because that hub does not have the object yet, and no user has removed it.
// The object stays, and is listed again once the Work has it. If the hub was restored, kept has
// these objects.
func (c *Controller) ofThisMembership(p *pass, appliedWork *placement.AppliedWork) (list, kept []placement.AppliedResource) {
	marked, listed := appliedWork.Labels[naming.LabelMember], slices.Clone(appliedWork.Status.AppliedResources)
	if marked == "" || c.Membership == "" || marked == string(c.Membership) {
		return listed, nil
	}
	wanted := p.keys()
	for _, one := range listed {
		if wanted[keyOf(one.WorkResourceIdentifier)] {
			list = append(list, one)
		} else {
			kept = append(kept, one)
		}
	}
	if len(kept) > 0 {
		c.Log.Info("Objects of an earlier membership stay", "work", p.work.Name, "objects", len(kept))
	}
	if !c.isFromLost(appliedWork) {
		kept = nil
	}
	return list, kept
}

func (c *Controller) createAppliedWork(ctx context.Context, name string) (*placement.AppliedWork, error) {
	appliedWork := &placement.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       placement.AppliedWorkSpec{WorkName: name, WorkNamespace: c.Namespace},
	}
	mark(appliedWork, c.Membership)
	err := c.member.Create(ctx, appliedWork, client.FieldOwner(fieldOwner))
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, fmt.Errorf("making AppliedWork %s, which this agent has not seen yet: %w", name, err)
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err), meta.IsNoMatchError(err):
		// The kind is gone, or about to go.
		c.endUnserved()
		return nil, fmt.Errorf("making AppliedWork %s: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("making AppliedWork %s: %w", name, err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(appliedWork), appliedWork)
	return appliedWork, nil
}

// orphansOf lists the objects of a deleted Work after its AppliedWork was lost, alone or with its
// kind. A Work without manifest conditions was not applied in this membership, and has no orphans.
func (c *Controller) orphansOf(ctx context.Context, work *placement.Work) (list []placement.AppliedResource, err error) {
	if len(work.Status.ManifestConditions) == 0 {
		return nil, nil
	}
	p := &pass{manifests: manifestsOf(work)}
	if err := c.resolve(p); err != nil {
		return nil, err
	}
	for _, m := range p.manifests {
		if m.problem != "" || m.resource.Resource == "" {
			continue
		}
		object, err := c.objects.Resource(m.resource).Namespace(m.key.Namespace).Get(ctx, m.key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking for %s of Work %s, which has no AppliedWork: %w", m.key, work.Name, err)
		}
		if is := summarize(object); is.isOrphanOf(work.Name) {
			list = append(list, placement.AppliedResource{WorkResourceIdentifier: m.identifier(), UID: is.uid})
		}
	}
	return list, nil
}

// mark labels an AppliedWork with the membership. The finalizer keeps the owned objects if the
// AppliedWork is deleted without a propagation policy, for example together with its CRD.
//
// A policy takes precedence over the finalizer. Muster's agent, KubeFleet's agent and kubectl
// delete with a policy.
func mark(appliedWork *placement.AppliedWork, membership types.UID) {
	if membership != "" {
		metav1.SetMetaDataLabel(&appliedWork.ObjectMeta, naming.LabelMember, string(membership))
	}
	controllerutil.AddFinalizer(appliedWork, metav1.FinalizerOrphanDependents)
}

// appliedFor reports whether an AppliedWork belongs to a membership. KubeFleet's agent and earlier
// versions set no label; then the namespace decides.
func appliedFor(appliedWork *placement.AppliedWork, namespace string, membership types.UID) bool {
	marked := appliedWork.Labels[naming.LabelMember]
	return appliedWork.Spec.WorkNamespace == namespace && (marked == "" || marked == string(membership))
}

// adopt marks an existing AppliedWork for this membership.
func (c *Controller) adopt(ctx context.Context, appliedWork *placement.AppliedWork) error {
	before := appliedWork.DeepCopy()
	mark(appliedWork, c.Membership)
	if equality.Semantic.DeepEqual(before.ObjectMeta, appliedWork.ObjectMeta) {
		return nil
	}
	if err := c.member.Patch(ctx, appliedWork, changesOf(before), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("marking AppliedWork %s as this membership's: %w", appliedWork.Name, err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(appliedWork), appliedWork)
	return nil
}

// inherit takes over the AppliedWork of a Work from the member namespace before a revocation.
func (c *Controller) inherit(ctx context.Context, work *placement.Work, o *observed) error {
	if o.deleted || o.recipient != "" || o.owner == nil || o.owner.Spec.WorkNamespace == c.Namespace ||
		!delivery.Inherits(work.Labels, o.owner.Spec.WorkNamespace, c.Report) {
		return nil
	}
	before := o.owner
	o.owner = before.DeepCopy()
	o.owner.Spec.WorkNamespace = c.Namespace
	mark(o.owner, c.Membership) // it is the same hub, so its Work decides what to delete
	if err := c.member.Patch(ctx, o.owner, changesOf(before), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("taking over AppliedWork %s of member namespace %s: %w", before.Name, before.Spec.WorkNamespace, err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(o.owner), o.owner)
	return nil
}

// checkOwner reads past the cache and returns an error if the AppliedWork is being deleted.
// Kubernetes deletes the objects of a deleted owner.
func (c *Controller) checkOwner(ctx context.Context, self owner) error {
	is, err := c.getAppliedWork(ctx, c.live, self.name)
	if err == nil && (is == nil || is.UID != self.uid || is.DeletionTimestamp != nil) {
		err = fmt.Errorf("AppliedWork %s is being deleted: waiting until it is gone", self.name)
	}
	return err
}

// pruneAndList deletes objects no longer in the Work, and lists the others in the AppliedWork.
func (c *Controller) pruneAndList(ctx context.Context, p *pass, appliedWork *placement.AppliedWork) error {
	before := map[key]placement.AppliedResource{}
	for _, one := range appliedWork.Status.AppliedResources {
		before[keyOf(one.WorkResourceIdentifier)] = one
	}
	var list []placement.AppliedResource
	for _, m := range p.manifests {
		was, listed := before[m.key]
		delete(before, m.key)
		switch {
		case m.problem == "" && m.resource.Resource != "":
			uid := p.attempts[m.key].as.uid
			if uid == "" {
				uid = was.UID
			}
			list = append(list, placement.AppliedResource{WorkResourceIdentifier: m.identifier(), UID: uid})
		case listed:
			list = append(list, was)
		}
	}
	var heirs map[key]string
	if len(before) > 0 {
		if err := c.confirmPruning(ctx, p.work); err != nil {
			return err
		}
		var err error
		if heirs, err = c.heirs(ctx, p.work); err != nil {
			return err
		}
	}
	for _, one := range appliedWork.Status.AppliedResources {
		if _, dropped := before[keyOf(one.WorkResourceIdentifier)]; !dropped {
			continue
		}
		left, err := c.deleteObject(ctx, appliedWork, one, heirs)
		if err != nil {
			return err
		}
		if left.Left == 0 {
			continue
		}
		list = append(list, one)
		if len(left.Held) == 0 {
			left.Held = []string{keyOf(one.WorkResourceIdentifier).String() + " is being deleted"}
		}
		p.left = append(p.left, left.Held...)
		if left.Retry {
			p.requeueAt(c.Clock.Now().Add(applied.RemoveRetry))
		}
	}
	return c.writeResources(ctx, appliedWork, list)
}

// confirmPruning returns an error unless the hub has the same Work as the cache. After a start of
// the agent the cache may have an older Work, and pruning would delete an object added since.
func (c *Controller) confirmPruning(ctx context.Context, work *placement.Work) error {
	var now placement.Work
	if err := c.hubLive.Get(ctx, client.ObjectKeyFromObject(work), &now); err != nil {
		return fmt.Errorf("keeping what Work %s has no more until the hub confirms it: %w", work.Name, err)
	}
	if now.UID != work.UID || now.Generation != work.Generation || now.DeletionTimestamp != nil {
		return fmt.Errorf("keeping what Work %s has no more: the hub has generation %d of it, and generation %d was applied",
			work.Name, now.Generation, work.Generation)
	}
	return nil
}

// writeResources writes the list of applied objects, if it changed.
func (c *Controller) writeResources(ctx context.Context, appliedWork *placement.AppliedWork, list []placement.AppliedResource) error {
	before := appliedWork.DeepCopy()
	appliedWork.Status.AppliedResources = list
	if equality.Semantic.DeepEqual(before.Status, appliedWork.Status) {
		return nil
	}
	if err := c.member.Status().Patch(ctx, appliedWork, changesOf(before), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("writing the status of AppliedWork %s: %w", appliedWork.Name, err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(appliedWork), appliedWork)
	return nil
}

// changesOf returns a patch of the changes since before. A conflict is an error.
func changesOf(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
