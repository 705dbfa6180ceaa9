package bundle

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/hub/runtime/servedkinds"
	"github.com/muster-fleet/muster/internal/kube"
)

// remove deletes all deployments of a Bundle under deletion, and removes its finalizer once they
// are gone.
func (c *Controller) remove(ctx context.Context, bundle *fleet.Bundle) error {
	definition, err := c.Kinds.Deleted(ctx, &fleet.Bundle{}, &fleet.BundleDeployment{})
	if err != nil {
		return err
	}
	if definition != "" {
		return c.reportKept(ctx, bundle, reasons.DefinitionDeleted, servedkinds.Kept(definition))
	}
	key := client.ObjectKeyFromObject(bundle)
	left, quarantined, err := c.deleteDeployments(ctx, key)
	if err == nil && len(quarantined) > 0 {
		return c.reportKept(ctx, bundle, reasons.Quarantined, keptInQuarantine(quarantined))
	}
	if err != nil || left > 0 {
		return err // the event of the last deletion requeues the Bundle
	}
	c.forget(key)
	if err := c.patchFinalizer(ctx, bundle, controllerutil.RemoveFinalizer); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Bundle removed")
	return nil
}

// deleteDeployments deletes the cached deployments of a Bundle. It returns their number, and the
// quarantined Clusters with kept deployments.
func (c *Controller) deleteDeployments(ctx context.Context, bundle types.NamespacedName) (int, []*fleet.Cluster, error) {
	deployments, err := c.deployments(ctx, bundle)
	if err != nil {
		return 0, nil, err
	}
	list, quarantined, err := c.confined(ctx, slices.Collect(maps.Values(deployments)))
	if err != nil {
		return 0, nil, err
	}
	return len(list), quarantined, forEach(ctx, len(list), writers, func(i int) error {
		return c.deleteDeployment(ctx, list[i], removal.SourceDeleted)
	})
}

// keptInQuarantine returns the message about a deleted Bundle kept for quarantined Clusters.
func keptInQuarantine(clusters []*fleet.Cluster) string {
	slices.SortFunc(clusters, func(a, b *fleet.Cluster) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return fmt.Sprintf("the Bundle is being deleted, and %d quarantined Clusters keep its workload until their quarantine ends: %s",
		len(clusters), membership.EndQuarantine(clusters[0]))
}

// recordRemoval notes the hub's deletion of a deployment on the member's report, before the
// deletion.
func (c *Controller) recordRemoval(ctx context.Context, d *fleet.BundleDeployment) error {
	namespace := kube.CoreMetadata("Namespace")
	if err := c.Client.Get(ctx, types.NamespacedName{Name: d.Namespace}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	cluster, is := membership.RecordOf(namespace)
	if !is || namespace.DeletionTimestamp != nil {
		return nil
	}
	return removal.Record(ctx, c.Client, c.Live, types.NamespacedName{Namespace: d.Namespace, Name: cluster.Name},
		client.ObjectKeyFromObject(d), d.UID)
}

// cleanUp deletes the deployments of a Bundle deleted without its finalizer.
func (c *Controller) cleanUp(ctx context.Context, key types.NamespacedName) error {
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
		return err // its deployments stay until Bundles can be read
	}
	_, _, err = c.deleteDeployments(ctx, key)
	return err
}

func (c *Controller) forget(key types.NamespacedName) {
	c.computed.Forget(key)
	c.bundleWrites.Forget(key)
	c.contents.setDesired(key, "")
	c.lost.take(key)
}

// reportKept reports why a Bundle under deletion and its deployments are kept.
func (c *Controller) reportKept(ctx context.Context, bundle *fleet.Bundle, reason, message string) error {
	after := bundle.DeepCopy()
	after.Status.ObservedGeneration = bundle.Generation
	after.Status.Conditions = kube.SetCondition(after.Status.Conditions, c.Clock.Now(),
		kube.Condition(fleet.ConditionReady, false, reason, message))
	if err := kube.PatchStatus(ctx, c.Client, bundle, after); err != nil || after.ResourceVersion == bundle.ResourceVersion {
		return err
	}
	c.bundleWrites.Expect(client.ObjectKeyFromObject(after), after)
	c.Recorder.Eventf(after, nil, corev1.EventTypeWarning, reason, "Remove", "%s", message)
	return nil
}

// deleteLeftover deletes the deployments on Clusters outside the Bundle's targets. It keeps them if
// the definition of a kind in their selection was deleted.
func (c *Controller) deleteLeftover(ctx context.Context, leftover []leftover) error {
	if len(leftover) == 0 {
		return nil
	}
	definition, err := c.Kinds.Deleted(ctx, &fleet.Cluster{}, &fleet.ClusterGroup{}, &fleet.BundleNamespaceMapping{})
	if err == nil && definition != "" {
		err = fmt.Errorf("keeping %d BundleDeployments that no Cluster matches any more: the CustomResourceDefinition %s is gone or being "+
			"deleted: install the fleet-crd chart", len(leftover), definition)
	}
	if err != nil {
		return err
	}
	return forEach(ctx, len(leftover), writers, func(i int) error {
		one := leftover[i]
		if removable, _, err := c.confined(ctx, []*fleet.BundleDeployment{one.deployment}); err != nil || len(removable) == 0 {
			return err // a Cluster no longer reached by the Bundle may be quarantined
		}
		return c.deleteDeployment(ctx, one.deployment, one.cause)
	})
}
