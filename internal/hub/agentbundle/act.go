package agentbundle

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// act writes the Bundle of an agent that is told something, and takes away that of one which is not the hub's any more.
func (c *Controller) act(ctx context.Context, s seen, said verdict) error {
	switch said.state {
	case tell:
		return c.write(ctx, s)
	case NotManaged, SwitchedOff, ForeignAgent, CannotBeManaged:
		return c.remove(ctx, s)
	case UpToDate, Updating, WaitingForTurn, RolloutStopped, DidNotComeBack, Offline, NotJoined, Paused, NameTaken:
	}
	return nil
}

// write makes the Bundle what it should be, whatever was done to it by hand.
func (c *Controller) write(ctx context.Context, s seen) error {
	bundle := s.desired
	var err error
	if s.bundle == nil {
		err = c.Client.Create(ctx, bundle, kube.FieldOwner)
	} else {
		var live fleet.Bundle
		if err = c.Live.Get(ctx, client.ObjectKeyFromObject(bundle), &live); err == nil {
			live.Spec, live.Labels, live.Annotations, live.OwnerReferences = bundle.Spec, bundle.Labels, bundle.Annotations, bundle.OwnerReferences
			bundle = &live
			err = c.Client.Update(ctx, bundle, kube.FieldOwner)
		}
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return nil // the event of that wakes the Cluster
	}
	if err != nil {
		return fmt.Errorf("writing Bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	c.written.Store(bundle)
	c.whole.Store(bundle.UID, held{bundle.Generation, bundle.Labels[fleet.LabelAgent]})
	return nil
}

// remove takes the Bundle away; the agent leaves the release to whoever looks after it then.
func (c *Controller) remove(ctx context.Context, s seen) error {
	if s.bundle == nil || s.bundle.DeletionTimestamp != nil || !metav1.IsControlledBy(s.bundle, s.cluster) {
		return nil
	}
	if err := c.Client.Delete(ctx, s.bundle, client.Preconditions{UID: &s.bundle.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Bundle %s/%s: %w", s.bundle.Namespace, s.bundle.Name, err)
	}
	c.whole.Delete(s.bundle.UID)
	return nil
}
