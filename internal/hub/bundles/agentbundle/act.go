package agentbundle

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/kube"
)

// act writes the Bundle of an agent when its desired version is sent. It deletes the Bundle of an
// agent outside the hub's management.
func (c *Controller) act(ctx context.Context, o observed, d decision) error {
	switch d.state {
	case send:
		return c.write(ctx, o)
	case NotManaged, SwitchedOff, ForeignAgent, SharedCredential, CannotBeManaged, UpgradesRefused, NoCredential:
		return c.remove(ctx, o)
	case UpToDate, Updating, WaitingForTurn, RolloutStopped, DidNotComeBack, Offline, NotJoined, Paused, OutsideWindow, NameTaken:
	}
	return nil
}

// write makes the Bundle match the desired Bundle and overwrites changes by others.
func (c *Controller) write(ctx context.Context, o observed) (err error) {
	bundle := o.desiredBundle
	if before := o.sending(o.sentAt).before; before != "" {
		bundle.Annotations[annotationBefore] = before
	}
	if o.bundle == nil {
		err = c.Client.Create(ctx, bundle, kube.FieldOwner)
	} else {
		bundle = o.bundle.DeepCopy()
		bundle.Spec, bundle.Labels, bundle.Annotations = o.desiredBundle.Spec, o.desiredBundle.Labels, o.desiredBundle.Annotations
		bundle.OwnerReferences = o.desiredBundle.OwnerReferences
		err = c.Client.Update(ctx, bundle, kube.FieldOwner)
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && !kube.NotServed(err) {
		return nil // the resulting event enqueues the Cluster
	}
	if err != nil {
		return fmt.Errorf("writing Bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	c.expected.Expect(client.ObjectKeyFromObject(o.cluster), bundle)
	return nil
}

// remove deletes the Bundle. The agent leaves the release to its next manager. Once Muster's agent
// acts, the hub also deletes the Bundle of Rancher Fleet's hub. This Bundle would replace Muster's
// agent by Rancher Fleet's.
func (c *Controller) remove(ctx context.Context, o observed) error {
	if o.bundle == nil || o.bundle.DeletionTimestamp != nil {
		return nil
	}
	if replaces := o.ranchers && o.unmanaged == SharedCredential; !replaces && !metav1.IsControlledBy(o.bundle, o.cluster) {
		return nil
	}
	return kube.DeleteByUID(ctx, c.Client, o.bundle)
}
