package bundle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/served"
	"github.com/muster-fleet/muster/internal/kube"
)

// remove takes all deployments of a Bundle away that is being deleted, and lets it go when they are gone.
func (c *Controller) remove(ctx context.Context, bundle *fleet.Bundle) error {
	definition, err := c.Kinds.Deleted(ctx, &fleet.Bundle{}, &fleet.BundleDeployment{})
	if err != nil {
		return err
	}
	if definition != "" {
		return c.keep(ctx, bundle, definition)
	}
	key := client.ObjectKeyFromObject(bundle)
	left, err := c.takeAllAway(ctx, key)
	if err != nil || left > 0 {
		return err // the deletion of the last one goes on
	}
	c.forget(key)
	if err := c.patchFinalizer(ctx, bundle, controllerutil.RemoveFinalizer); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Bundle removed")
	return nil
}

// takeAllAway deletes the deployments of a Bundle that the cache knows and returns how many there were.
func (c *Controller) takeAllAway(ctx context.Context, bundle types.NamespacedName) (int, error) {
	deployments, err := c.deployments(ctx, bundle)
	if err != nil {
		return 0, err
	}
	var list []*fleet.BundleDeployment
	for _, d := range deployments {
		list = append(list, d)
	}
	failures := make([]error, len(list))
	each(indexes(len(list)), writers, func(i int) { failures[i] = c.takeAway(ctx, list[i]) })
	return len(list), errors.Join(failures...)
}

// abandon takes away the deployments of a Bundle that went without the hub.
func (c *Controller) abandon(ctx context.Context, key types.NamespacedName) error {
	c.forget(key)
	deployments, err := c.deployments(ctx, key)
	if err != nil || len(deployments) == 0 {
		return err
	}
	var bundle fleet.Bundle
	if err := c.Live.Get(ctx, key, &bundle); !apierrors.IsNotFound(err) {
		return err // the cache is behind; its event is on the way
	}
	if definition, err := c.Kinds.Deleted(ctx, &fleet.Bundle{}); err != nil || definition != "" {
		return err // its deployments stay until the Bundles can be seen
	}
	_, err = c.takeAllAway(ctx, key)
	return err
}

func (c *Controller) forget(key types.NamespacedName) {
	c.memories.Delete(key)
	c.contents.want(key, "")
}

// keep leaves a Bundle that is being deleted and its deployments as they are, because somebody deletes their whole kind.
func (c *Controller) keep(ctx context.Context, bundle *fleet.Bundle, definition string) error {
	after := bundle.DeepCopy()
	after.Status.Conditions = kube.SetCondition(after.Status.Conditions, c.Clock.Now(),
		kube.Condition(fleet.ConditionReady, false, served.ReasonDefinitionDeleted, served.Kept(definition)))
	if err := kube.PatchStatus(ctx, c.Client, bundle, after); err != nil || after.ResourceVersion == bundle.ResourceVersion {
		return err
	}
	c.written.Store(after)
	c.Recorder.Eventf(after, nil, corev1.EventTypeWarning, served.ReasonDefinitionDeleted, "Remove", "%s", served.Kept(definition))
	return nil
}

// takeLeftoverAway deletes the deployments on Clusters that a Bundle is not for any more, unless that is because the definition of what says
// which Clusters it is for was deleted.
func (c *Controller) takeLeftoverAway(ctx context.Context, leftover []*fleet.BundleDeployment) []error {
	if len(leftover) == 0 {
		return nil
	}
	definition, err := c.Kinds.Deleted(ctx, &fleet.Cluster{}, &fleet.ClusterGroup{}, &fleet.BundleNamespaceMapping{})
	if err == nil && definition != "" {
		err = fmt.Errorf("keeping %d BundleDeployments that no Cluster matches any more: the CustomResourceDefinition %s is gone or being deleted: install the fleet-crd chart", len(leftover), definition)
	}
	if err != nil {
		return []error{err}
	}
	failures := make([]error, len(leftover))
	each(indexes(len(leftover)), writers, func(i int) { failures[i] = c.takeAway(ctx, leftover[i]) })
	return failures
}
