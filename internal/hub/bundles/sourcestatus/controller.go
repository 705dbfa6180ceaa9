// Package sourcestatus writes the deployed resources into the status of GitRepos and HelmOps.
//
// Only this package writes the fields of SourceResources. Its invariants: a report of an agent
// causes no read of other GitRepos, and many concurrent reports cost one write. Lists have maxima,
// because members write the names in them.
package sourcestatus

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/bundles/bundle"
	"github.com/muster-fleet/muster/internal/hub/runtime/anyform"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// coalesce is the time for gathering reports. A source with a long count is counted less often:
	// its turns take at most one part in share of the time.
	coalesce, share = 2 * time.Second, 20
	// indexController indexes Bundles by the UID of their controlling GitRepo or HelmOp.
	indexController = "controlling-source"
)

// Controller reconciles the GitRepos or HelmOps of one kind.
type Controller struct {
	controller.Deps
	// cached reads from the cache. The client of the manager reads maps from the API server.
	cached client.Reader
	// kind is GitRepo or HelmOp, label the label of their Bundles with the name.
	kind, label string
	// took is the duration of the last turn for each object.
	took kube.Memory[types.NamespacedName, time.Duration]
}

// Register adds a controller for GitRepos and one for HelmOps to the manager.
func Register(ctx context.Context, mgr ctrl.Manager, deps controller.Deps) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &fleet.Bundle{}, indexController, controllerOf); err != nil {
		return err
	}
	for kind, label := range map[string]string{"GitRepo": fleet.LabelRepoName, "HelmOp": fleet.LabelHelmOpName} {
		c := &Controller{Deps: deps, cached: mgr.GetCache(), kind: kind, label: label}
		err := ctrl.NewControllerManagedBy(mgr).Named("resources-of-"+kind).
			For(anyform.Object(kind)).
			Watches(&fleet.BundleDeployment{}, controller.On(c.onDeployment)).
			Complete(controller.RetryConflicts(c.Recorder, c))
		if err != nil {
			return err
		}
	}
	return nil
}

// controllerOf is the index of Bundles by their GitRepo or HelmOp.
func controllerOf(o client.Object) []string {
	if owner := metav1.GetControllerOf(o); owner != nil && (owner.Kind == "GitRepo" || owner.Kind == "HelmOp") {
		return []string{string(owner.UID)}
	}
	return nil
}

// onDeployment enqueues the source of a BundleDeployment after a short delay, once for all reports
// in this time.
func (c *Controller) onDeployment(_ context.Context, before, after *fleet.BundleDeployment, q controller.Queue) {
	d := cmp.Or(after, before)
	key := types.NamespacedName{Namespace: d.Labels[fleet.LabelBundleNamespace], Name: d.Labels[c.label]}
	if key.Name == "" || key.Namespace == "" {
		return
	}
	wait := coalesce
	if took, found := c.took.Get(key); found {
		wait = max(wait, share*took)
	}
	q.AddAfter(reconcile.Request{NamespacedName: key}, wait)
}

// Reconcile counts the resources deployed by the Bundles of a source, and writes a changed result.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	source := anyform.Object(c.kind)
	if err := c.cached.Get(ctx, request.NamespacedName, source); err != nil || source.GetDeletionTimestamp() != nil {
		c.took.Forget(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	began := time.Now()
	deployed, err := c.count(ctx, source)
	if err != nil {
		return reconcile.Result{}, err
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployed)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encoding the resources of %s: %w", request, err)
	}
	c.took.Set(request.NamespacedName, time.Since(began))
	before := anyform.CachedDigest(source)
	if _, described := source.Object["status"]; !described || anyform.DeployedDigest(status) == before ||
		before == "" && deployed.DesiredReadyClusters == 0 { // the first status is an event
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, c.write(ctx, source, status)
}

// count observes the BundleDeployments of a source.
func (c *Controller) count(ctx context.Context, source *unstructured.Unstructured) (*fleet.SourceResources, error) {
	var bundles fleet.BundleList
	err := c.Client.List(ctx, &bundles, client.InNamespace(source.GetNamespace()),
		client.MatchingFields{indexController: string(source.GetUID())}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the Bundles of %s %s: %w", c.kind, client.ObjectKeyFromObject(source), err)
	}
	t := newTally()
	for i := range bundles.Items {
		var list fleet.BundleDeploymentList
		if err := bundle.ListDeployments(ctx, c.Client, client.ObjectKeyFromObject(&bundles.Items[i]), &list); err != nil {
			return nil, fmt.Errorf("listing the BundleDeployments of Bundle %s: %w", client.ObjectKeyFromObject(&bundles.Items[i]), err)
		}
		for j := range list.Items {
			t.add(&list.Items[j])
		}
	}
	return t.result(), nil
}

// write replaces the fields owned by this package. It leaves all other fields of the status to
// their writers.
func (c *Controller) write(ctx context.Context, source *unstructured.Unstructured, status map[string]any) error {
	patch, err := anyform.DeployedPatch(source.GetUID(), status)
	if err != nil {
		return fmt.Errorf("encoding the resources of %s %s: %w", c.kind, client.ObjectKeyFromObject(source), err)
	}
	err = c.Client.Status().Patch(ctx, source, client.RawPatch(types.JSONPatchType, patch), kube.FieldOwner)
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the resources of %s %s: %w", c.kind, client.ObjectKeyFromObject(source), err))
	}
	return nil
}
